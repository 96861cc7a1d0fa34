"""The database queries for notebooks: what a learner last ran or submitted in each cell of a lesson."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncSession

from app.errors import RequestTooLarge
from app.i18n import N_
from app.runs.event_log import read_events
from app.runs.service import latest_runs
from runners.wire.protocol import Event

MAX_OUTPUT_BYTES = 64_000_000
"""Limit for the outputs of a notebook, as counted by ``outputs.outputs_size``."""


@dataclass(frozen=True, slots=True)
class CellRun:
    """What a learner last ran in a cell, or submitted as its exercise: the later of the two.

    A submission that was not run as well has no output: its checks called it with hidden inputs.
    """

    code: str
    events: tuple[Event, ...] = ()
    order: int | None = None
    """Counts these runs in the lesson from 1; None for a submission."""


class OutputsTooLarge(RequestTooLarge):
    """The outputs would make the file too large for notebook programs."""

    message = N_(
        "Your outputs are too large for a file. Rerun the cells with the most output so that they "
        "print or display less, or download the lesson without your outputs."
    )


async def latest_runs_by_cell(session: AsyncSession, learner: str, lesson: str) -> dict[str, CellRun]:
    """What the learner last ran or submitted in each cell of ``course/slug``, with the events stored so far.

    Raises:
        OutputsTooLarge: the outputs exceed ``MAX_OUTPUT_BYTES``.
    """
    latest = {run.cell: run for run in await latest_runs(session, learner, lesson)}
    submitted: dict[str, CellRun] = {}
    for submission in await latest_runs(session, learner, lesson, judgements=True):
        run = latest.get(submission.cell)
        if run is None or (run.created_at < submission.created_at and run.code != submission.code):
            submitted[submission.cell] = CellRun(submission.code)
            latest.pop(submission.cell, None)
    if sum(run.stored_bytes for run in latest.values()) > MAX_OUTPUT_BYTES:
        raise OutputsTooLarge
    in_order = sorted(latest.values(), key=lambda run: (run.created_at, run.id))
    return submitted | {
        run.cell: CellRun(run.code, tuple(await read_events(session, run.id)), order)
        for order, run in enumerate(in_order, 1)
    }
