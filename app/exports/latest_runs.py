"""The database query for notebooks: a learner's latest run of each cell of a lesson."""

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
    """A learner's latest run of a cell. ``order`` counts the learner's runs of this lesson from 1."""

    code: str
    events: tuple[Event, ...]
    order: int


class OutputsTooLarge(RequestTooLarge):
    """The outputs would make the file too large for notebook programs."""

    message = N_(
        "Your outputs are too large for a file. Rerun the cells with the most output so that they "
        "print or display less, or download the lesson without your outputs."
    )


async def latest_runs_by_cell(session: AsyncSession, learner: str, lesson: str) -> dict[str, CellRun]:
    """The learner's latest run of each cell of the lesson ``course/slug``, with the events stored so far.

    Raises:
        OutputsTooLarge: the outputs exceed ``MAX_OUTPUT_BYTES``.
    """
    latest = {run.cell: run for run in await latest_runs(session, learner, lesson)}
    if sum(run.stored_bytes for run in latest.values()) > MAX_OUTPUT_BYTES:
        raise OutputsTooLarge
    in_order = sorted(latest.values(), key=lambda run: (run.created_at, run.id))
    return {
        run.cell: CellRun(run.code, tuple(await read_events(session, run.id)), order)
        for order, run in enumerate(in_order, 1)
    }
