"""The queue position of a waiting run: behind other runs, its session's start, the runner's queue, or the database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from app.runs.models import Run, RunState
from runners.wire.client import ResourceNotFound, RunnerClient, RunnerError
from runners.wire.protocol import SessionInfo, SessionState

QueueState = Literal["queued", "starting", "running", "reconnecting", "unstored", "finished"]


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """``position`` is the session's position in the node's queue; ``ahead`` counts runs of the same session."""

    state: QueueState
    position: int | None = None
    ahead: int = 0
    wait_s: int | None = None
    """Rough time until the session gets a slot, rounded by ``round_wait_s``; None if unknown."""


def position_of_run(run: Run, session: SessionInfo | None, ahead: int) -> QueuePosition:
    """The queue position of a run. Pure."""
    if run.state == RunState.finished:
        return QueuePosition("finished")
    if run.state == RunState.running:
        return QueuePosition("running")
    if session is not None and session.state is SessionState.starting and ahead == 0:
        return QueuePosition("starting")
    if session is None:
        return QueuePosition("queued", None, ahead)
    return QueuePosition(
        "queued", session.position, ahead, None if session.wait_s is None else round_wait_s(session.wait_s)
    )


def round_wait_s(seconds: float) -> int:
    """Round an estimate: 0 for less than 10 s, then tens of seconds, then minutes."""
    if seconds < 10:
        return 0
    return 10 * round(seconds / 10) if seconds < 55 else 60 * max(1, round(seconds / 60))


async def look_up_position(runner: RunnerClient, run: Run, ahead: int) -> QueuePosition:
    """The queue position, asking the supervisor about the run's session if needed."""
    if run.state != RunState.queued:
        return position_of_run(run, None, ahead)
    try:
        return position_of_run(run, await runner.session(run.session_id), ahead)
    except ResourceNotFound:
        return position_of_run(run, None, ahead)
    except RunnerError:
        return QueuePosition("reconnecting", None, ahead)
