"""Where a run stands while it waits: behind others, for its session to start, for the runner or for the database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from app.runs.models import Run, RunState
from runners.client import NotKnown, RunnerClient, RunnerError
from runners.protocol import SessionInfo, SessionState

PlaceState = Literal["queued", "starting", "running", "reconnecting", "unstored", "finished"]


@dataclass(frozen=True, slots=True)
class Place:
    """``position`` is that of the session in the node's queue, ``ahead`` counts runs of the same session."""

    state: PlaceState
    position: int | None = None
    ahead: int = 0
    wait_s: int | None = None
    """About how long until the session gets a place, as ``rounded_wait_s`` gives it; None if that is not known."""


def place(run: Run, session: SessionInfo | None, ahead: int) -> Place:
    """What can be said of a run. Pure."""
    if run.state == RunState.finished:
        return Place("finished")
    if run.state == RunState.running:
        return Place("running")
    if session is not None and session.state is SessionState.starting and ahead == 0:
        return Place("starting")
    if session is None:
        return Place("queued", None, ahead)
    return Place("queued", session.position, ahead, None if session.wait_s is None else rounded_wait_s(session.wait_s))


def rounded_wait_s(seconds: float) -> int:
    """An estimate in steps that say how rough it is: 0 for less than 10 s, then tens of seconds, then minutes."""
    if seconds < 10:
        return 0
    return 10 * round(seconds / 10) if seconds < 55 else 60 * max(1, round(seconds / 60))


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
