"""A learner's feedback: moved to an account, exported, or erased."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Any, cast

from sqlalchemy import CursorResult, and_, delete, select, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased

from app.accounts.models import Account
from app.accounts.visitor_retention import RetentionRule
from app.db import stream_scalars
from app.feedback.models import LessonVote, ProblemReport

_PROBLEM_FIELDS = ("page", "lesson", "cell", "text", "language", "created_at", "resolved_at")
_VOTE_FIELDS = ("lesson", "helpful", "comment", "language", "updated_at")


async def move_feedback(session: AsyncSession, from_learner: str, to_learner: str) -> Mapping[str, int]:
    """Move one learner's feedback to another. If both voted on a lesson, the later vote is kept."""
    mine, theirs = aliased(LessonVote), aliased(LessonVote)
    both = select(mine.lesson, mine.id > theirs.id).join(
        theirs, and_(theirs.lesson == mine.lesson, theirs.learner_id == to_learner)
    )
    for lesson, later in (await session.execute(both.where(mine.learner_id == from_learner))).all():
        loser = to_learner if later else from_learner
        await session.execute(delete(LessonVote).where(LessonVote.learner_id == loser, LessonVote.lesson == lesson))
    for table in (LessonVote, ProblemReport):
        moved = update(table).where(table.learner_id == from_learner).values(learner_id=to_learner)
        await session.execute(moved.execution_options(synchronize_session=False))
    return {}


async def export_feedback(session: AsyncSession, account: Account) -> AsyncIterator[Mapping[str, Any]]:
    """The account's problem reports and votes on lessons."""
    problems = select(ProblemReport).where(ProblemReport.learner_id == account.learner_id).order_by(ProblemReport.id)
    async for problem in stream_scalars(session, problems):
        yield {"kind": "problem_report", "about": problem.kind} | {n: getattr(problem, n) for n in _PROBLEM_FIELDS}
    async for vote in stream_scalars(
        session, select(LessonVote).where(LessonVote.learner_id == account.learner_id).order_by(LessonVote.lesson)
    ):
        yield {"kind": "lesson_vote", **{name: getattr(vote, name) for name in _VOTE_FIELDS}}


async def erase_feedback(session: AsyncSession, account: Account) -> None:
    """Delete the account's votes; its problem reports are kept without a name, so that they can still be resolved."""
    await session.execute(delete(LessonVote).where(LessonVote.learner_id == account.learner_id))
    mine = update(ProblemReport).where(ProblemReport.learner_id == account.learner_id)
    await session.execute(mine.values(learner_id=None).execution_options(synchronize_session=False))


async def _anonymize_problems(session: AsyncSession, learner: str, before: datetime, most: int) -> int:
    """Remove the learner from old reports: the problems remain even if the visitor is gone."""
    theirs = (
        select(ProblemReport.id)
        .where(ProblemReport.learner_id == learner, ProblemReport.created_at < before)
        .limit(most)
    )
    nobodys = update(ProblemReport).where(ProblemReport.id.in_(theirs)).values(learner_id=None)
    done = await session.execute(nobodys.execution_options(synchronize_session=False))
    return cast(CursorResult[Any], done).rowcount


RETENTION_RULES = (
    RetentionRule(LessonVote.learner_id, LessonVote.updated_at),
    RetentionRule(ProblemReport.learner_id, ProblemReport.created_at, _anonymize_problems),
)
