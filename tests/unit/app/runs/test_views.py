"""Runs as browsers get them."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from app.db import now
from app.runs.models import Run, RunState
from app.runs.queue_position import QueuePosition
from app.runs.views import run_out


def shown(started_at: datetime | None, state: RunState) -> int | None:
    """How long such a run has been running, as a browser gets it."""
    run = Run(
        id="r", lesson="c/l", cell="x", topology="cpu", keras=3, state=state, created_at=now(), code="", last_seq=0
    )
    run.started_at = started_at
    return run_out(run, QueuePosition("running")).running_ms


@pytest.mark.parametrize(("ago_s", "at_least_ms"), [(8, 8_000), (-5, 0)])
def test_a_run_says_how_long_it_has_been_running(ago_s: int, at_least_ms: int) -> None:
    running_ms = shown(now() - timedelta(seconds=ago_s), RunState.running)

    assert running_ms is not None
    assert at_least_ms <= running_ms < at_least_ms + 5_000


def test_a_run_that_waits_or_has_ended_is_not_running() -> None:
    assert shown(None, RunState.queued) is None
    assert shown(now(), RunState.finished) is None
