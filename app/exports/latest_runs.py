"""The database queries for notebooks: what a learner last wrote, ran or submitted in each cell of a lesson."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account
from app.errors import RequestTooLarge
from app.i18n import N_
from app.runs.event_log import read_events
from app.runs.models import CodeDraft
from app.runs.service import latest_runs
from runners.wire.protocol import Event

MAX_OUTPUT_BYTES = 64_000_000
"""Limit for the outputs of a notebook, as counted by ``outputs.outputs_size``."""


@dataclass(frozen=True, slots=True)
class CellRun:
    """What a learner last wrote in a cell, ran in it, or submitted as its exercise: the latest of the three.

    Code that was not run has no output, and neither has a submission: its checks called it with hidden inputs.
    """

    code: str
    events: tuple[Event, ...] = ()
    order: int | None = None
    """Counts these runs in the lesson from 1; None for code that was not run."""


class OutputsTooLarge(RequestTooLarge):
    """The outputs would make the file too large for notebook programs."""

    message = N_(
        "Your outputs are too large for a file. Rerun the cells with the most output so that they "
        "print or display less, or download the lesson without your outputs."
    )


async def latest_runs_by_cell(session: AsyncSession, learner: str, lesson: str) -> dict[str, CellRun]:
    """What the learner last wrote, ran or submitted in each cell of ``course/slug``, with the events stored so far.

    What a visitor without an account has written, but not run, is known to their browser only; see ``edits``.

    Raises:
        OutputsTooLarge: the outputs exceed ``MAX_OUTPUT_BYTES``.
    """
    latest = {run.cell: run for run in await latest_runs(session, learner, lesson)}
    newest = {run.cell: (run.created_at, run.code) for run in latest.values()}
    unrun: dict[str, CellRun] = {}
    for submission in await latest_runs(session, learner, lesson, judgements=True):
        if _is_news(newest.get(submission.cell), submission.created_at, submission.code):
            newest[submission.cell] = (submission.created_at, submission.code)
            unrun[submission.cell] = CellRun(submission.code)
    for draft in await _drafts(session, learner, lesson):
        if draft.code is not None and _is_news(newest.get(draft.cell), draft.updated_at, draft.code):
            unrun[draft.cell] = CellRun(draft.code)
    for cell in unrun:
        latest.pop(cell, None)
    if sum(run.stored_bytes for run in latest.values()) > MAX_OUTPUT_BYTES:
        raise OutputsTooLarge
    in_order = sorted(latest.values(), key=lambda run: (run.created_at, run.id))
    return unrun | {
        run.cell: CellRun(run.code, tuple(await read_events(session, run.id)), order)
        for order, run in enumerate(in_order, 1)
    }


def _is_news(known: tuple[datetime, str] | None, at: datetime, code: str) -> bool:
    return known is None or (known[0] < at and known[1] != code)


async def _drafts(session: AsyncSession, learner: str, lesson: str) -> Sequence[CodeDraft]:
    mine = select(CodeDraft).join(Account, Account.id == CodeDraft.account_id)
    return (await session.scalars(mine.where(Account.learner_id == learner, CodeDraft.lesson == lesson))).all()
