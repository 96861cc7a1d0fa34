"""What feedback keeps of a learner: moved to the account they make, handed out whole, and what goes with it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Any, cast

from sqlalchemy import CursorResult, and_, delete, select, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased

from app.accounts.departed import Trace
from app.accounts.models import Account
from app.db import delete_some, each
from app.feedback.models import Problem, Vote

_OF_PROBLEM = ("page", "lesson", "cell", "text", "language", "created_at", "handled_at")
_OF_VOTE = ("lesson", "helpful", "sentence", "language", "at")


async def move_feedback(session: AsyncSession, from_learner: str, to_learner: str) -> Mapping[str, int]:
    """Give one learner's feedback to another. Where both voted on a lesson, the later vote stays."""
    mine, theirs = aliased(Vote), aliased(Vote)
    both = select(mine.lesson, mine.id > theirs.id).join(
        theirs, and_(theirs.lesson == mine.lesson, theirs.learner_id == to_learner)
    )
    for lesson, later in (await session.execute(both.where(mine.learner_id == from_learner))).all():
        loser = to_learner if later else from_learner
        await session.execute(delete(Vote).where(Vote.learner_id == loser, Vote.lesson == lesson))
    for table in (Vote, Problem):
        moved = update(table).where(table.learner_id == from_learner).values(learner_id=to_learner)
        await session.execute(moved.execution_options(synchronize_session=False))
    return {}


async def export_feedback(session: AsyncSession, account: Account) -> AsyncIterator[Mapping[str, Any]]:
    """The problems it reported and what it said of lessons."""
    problems = select(Problem).where(Problem.learner_id == account.learner_id).order_by(Problem.id)
    async for problem in each(session, problems):
        yield {"kind": "problem", "about": problem.kind} | {n: getattr(problem, n) for n in _OF_PROBLEM}
    async for vote in each(session, select(Vote).where(Vote.learner_id == account.learner_id).order_by(Vote.lesson)):
        yield {"kind": "vote", **{name: getattr(vote, name) for name in _OF_VOTE}}


async def erase_feedback(session: AsyncSession, account: Account) -> None:
    """Its votes go; the problems stay without a name, so that they can still be solved."""
    await session.execute(delete(Vote).where(Vote.learner_id == account.learner_id))
    mine = update(Problem).where(Problem.learner_id == account.learner_id)
    await session.execute(mine.values(learner_id=None).execution_options(synchronize_session=False))


async def _forget_votes(session: AsyncSession, learner: str, before: datetime, most: int) -> int:
    return await delete_some(session, Vote, most, Vote.learner_id == learner, Vote.at < before)


async def _take_name_off(session: AsyncSession, learner: str, before: datetime, most: int) -> int:
    """What is wrong with a page is still wrong when whoever said so is gone."""
    theirs = select(Problem.id).where(Problem.learner_id == learner, Problem.created_at < before).limit(most)
    nobodys = update(Problem).where(Problem.id.in_(theirs)).values(learner_id=None)
    done = await session.execute(nobodys.execution_options(synchronize_session=False))
    return cast(CursorResult[Any], done).rowcount


TRACES = (
    Trace(Vote.learner_id, Vote.at, _forget_votes),
    Trace(Problem.learner_id, Problem.created_at, _take_name_off),
)
