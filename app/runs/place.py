"""Where a run stands while it waits: behind others, for its session to start, or cut off from the runner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from app.runs.models import Run, RunState
from runners.client import NotKnown, RunnerClient, RunnerError
from runners.protocol import SessionInfo, SessionState

PlaceState = Literal["queued", "starting", "running", "reconnecting", "finished"]


@dataclass(frozen=True, slots=True)
class Place:
    """``position`` is that of the session in the node's queue, ``ahead`` counts runs of the same session."""

    state: PlaceState
    position: int | None = None
    ahead: int = 0


def place(run: Run, session: SessionInfo | None, ahead: int) -> Place:
    """What can be said of a run. Pure."""
    if run.state == RunState.finished:
        return Place("finished")
    if run.state == RunState.running:
        return Place("running")
    if session is not None and session.state is SessionState.starting and ahead == 0:
        return Place("starting")
    return Place("queued", session.position if session is not None else None, ahead)


async def look_up(runner: RunnerClient, run: Run, ahead: int) -> Place:
    """Ask the supervisor about a run's session, if that can matter."""
    if run.state != RunState.queued:
        return place(run, None, ahead)
    try:
        return place(run, await runner.session(run.session_id), ahead)
    except NotKnown:
        return place(run, None, ahead)
    except RunnerError:
        return Place("reconnecting", None, ahead)
