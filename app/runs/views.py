"""Runs as sent to and received from the browser."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel

from app.db import now
from app.runs.models import Run
from app.runs.queue_position import QueuePosition
from app.web.json_request import JsonRequest


class RunIn(JsonRequest):
    """A request to run code. ``lesson`` is ``course/slug``.

    ``topology`` and ``keras`` are the learner's choice among those that the cell offers; None means the default.
    """

    lesson: str
    cell: str
    code: str
    topology: str | None = None
    keras: int | None = None


class RunUrls(BaseModel):
    stream: str
    events: str
    stop: str


class RunOut(BaseModel):
    id: str
    lesson: str
    cell: str
    topology: str
    keras: int
    state: str
    outcome: str | None
    created_at: datetime
    code: str
    last_seq: int
    position: int | None
    ahead: int
    wait_s: int | None
    running_ms: int | None
    """How long it has been running; None if it is waiting or has finished."""
    urls: RunUrls


class RunsOut(BaseModel):
    """Several runs, in order of submission."""

    runs: list[RunOut]


def run_out(run: Run, at: QueuePosition) -> RunOut:
    path = f"/runs/{run.id}"
    return RunOut(
        id=run.id,
        lesson=run.lesson,
        cell=run.cell,
        topology=run.topology,
        keras=run.keras,
        state=run.state,
        outcome=run.outcome,
        created_at=run.created_at,
        code=run.code,
        last_seq=run.last_seq,
        position=at.position,
        ahead=at.ahead,
        wait_s=at.wait_s,
        running_ms=_running_ms(run, now()),
        urls=RunUrls(stream=f"{path}/stream", events=f"{path}/events", stop=f"{path}/stop"),
    )


def _running_ms(run: Run, at: datetime) -> int | None:
    if run.started_at is None or run.finished:
        return None
    return max(0, round((at - run.started_at).total_seconds() * 1000))
