"""What a notebook needs from SQL: a learner's latest run of each cell of a lesson."""

from __future__ import annotations

from sqlalchemy.ext.asyncio import AsyncSession

from app.exports.notebook import CellRun
from app.exports.outputs import MOST_OUTPUT_BYTES, OutputsTooLarge
from app.runs.log import read_events
from app.runs.service import latest_runs


async def runs_by_cell(session: AsyncSession, learner: str, lesson: str) -> dict[str, CellRun]:
    """The learner's latest run of each cell of the lesson ``course/slug``, with the events stored so far.

    Raises:
        OutputsTooLarge: they are too many to be read.
    """
    latest = {run.cell: run for run in await latest_runs(session, learner, lesson)}
    if sum(run.stored_bytes for run in latest.values()) > MOST_OUTPUT_BYTES:
        raise OutputsTooLarge
    in_order = sorted(latest.values(), key=lambda run: (run.created_at, run.id))
    return {
        run.cell: CellRun(run.code, tuple(await read_events(session, run.id)), order)
        for order, run in enumerate(in_order, 1)
    }
