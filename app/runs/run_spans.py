"""The spans of a run in a trace, from the times that the supervisor has reported."""

from __future__ import annotations

from collections.abc import Sequence

from app.tracing import active_tracing
from runners.wire.protocol import Event, FinishedEvent


def record_run_spans(events: Sequence[Event]) -> None:
    """Record the spans of a run whose last event has just been stored, if it is part of a trace."""
    end, tracing = events[-1], active_tracing()
    if tracing is None or not isinstance(end, FinishedEvent) or end.trace is None:
        return
    times = end.trace
    at = times.accepted_at
    run = tracing.record_span(
        *("run", at, at + end.at_ms / 1000), parent=times.context, attributes={"lockstep.outcome": end.outcome.value}
    )
    admitted, started = times.admitted_ms, times.started_ms
    for name, begin_ms, end_ms in (
        ("queue", 0, end.at_ms if admitted is None else admitted),
        ("start", admitted, end.at_ms if started is None else started),
        ("execute", started, end.at_ms),
        ("first output", started, end.first_output_ms),
    ):
        if begin_ms is not None and end_ms is not None:
            tracing.record_span(name, at + begin_ms / 1000, at + end_ms / 1000, parent=run)
