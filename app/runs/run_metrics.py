"""What the events of runs add to the metrics."""

from __future__ import annotations

from collections.abc import Sequence

from app.metrics import FIRST_OUTPUT_SECONDS, RUN_SECONDS, RUN_WAIT_SECONDS, RUNS
from runners.wire.protocol import Event, FinishedEvent, StartedEvent


def count_stored(events: Sequence[Event]) -> None:
    """Count events that this process has just stored. Each event is stored once, by one process."""
    for event in events:
        if isinstance(event, StartedEvent):
            RUN_WAIT_SECONDS.observe(event.at_ms / 1000)
        elif isinstance(event, FinishedEvent):
            RUNS.labels(event.outcome.value).inc()
            RUN_SECONDS.observe(event.duration_ms / 1000)
            if event.first_output_ms is not None:
                FIRST_OUTPUT_SECONDS.observe(event.first_output_ms / 1000)
