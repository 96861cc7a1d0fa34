"""Reading feedback: lists that go on behind the last one shown, and how many found a lesson helpful."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account
from app.feedback.models import OPEN, SAID, Kind, Problem, Vote
from app.web.text import with_turns_shown

ROWS = 30
"""Rows of a page."""


class Which(StrEnum):
    """Which problems the inbox shows."""

    open = "open"
    handled = "handled"
    all = "all"


@dataclass(frozen=True, slots=True)
class Filter:
    """What the inbox is narrowed to; None and an empty lesson narrow nothing."""

    which: Which = Which.open
    kind: Kind | None = None
    lesson: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A problem as it is shown. ``author`` is None for a visitor."""

    problem: Problem
    author: Account | None
    handler: Account | None

    @property
    def text(self) -> str:
        """What was written; what would turn the direction of writing around is written out."""
        return with_turns_shown(self.problem.text)


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence beside a vote."""

    vote: Vote

    @property
    def text(self) -> str:
        """What was written; what would turn the direction of writing around is written out."""
        return with_turns_shown(self.vote.sentence)


@dataclass(frozen=True, slots=True)
class Count:
    """How many said yes and no of a lesson."""

    lesson: str
    yes: int
    no: int

    @property
    def share(self) -> float:
        """Of those who answered, who said yes: 0 to 1."""
        return self.yes / (self.yes + self.no)


async def problems(
    session: AsyncSession, narrowed: Filter, before: str | None = None
) -> tuple[Sequence[Row], str | None]:
    """Problems, the newest first; and where the next page begins."""
    found = select(Problem).order_by(Problem.id.desc())
    if narrowed.which is Which.open:
        found = found.where(OPEN)
    elif narrowed.which is Which.handled:
        found = found.where(Problem.handled_at.is_not(None))
    if narrowed.kind:
        found = found.where(Problem.kind == narrowed.kind)
    if narrowed.lesson:
        found = found.where(Problem.lesson == narrowed.lesson)
    if before:
        found = found.where(Problem.id < before)
    page = list(await session.scalars(found.limit(ROWS + 1)))
    return await rows(session, page[:ROWS]), page[ROWS - 1].id if len(page) > ROWS else None


async def rows(session: AsyncSession, found: Sequence[Problem]) -> Sequence[Row]:
    """The problems with who reported and who handled them."""
    learners = {one.learner_id for one in found if one.learner_id}
    handlers = {one.handled_by for one in found if one.handled_by}
    people = select(Account).where(Account.learner_id.in_(learners) | Account.id.in_(handlers))
    known = list(await session.scalars(people)) if learners or handlers else []
    by_learner = {account.learner_id: account for account in known}
    by_id = {account.id: account for account in known}
    return [Row(one, by_learner.get(one.learner_id or ""), by_id.get(one.handled_by or "")) for one in found]


async def counts(session: AsyncSession) -> Sequence[Count]:
    """The votes of every lesson that has any, by lesson."""
    found = select(Vote.lesson, Vote.helpful, func.count()).group_by(Vote.lesson, Vote.helpful)
    votes: dict[str, dict[bool, int]] = {}
    for lesson, helpful, number in await session.execute(found):
        votes.setdefault(lesson, {})[helpful] = number
    return [Count(lesson, of.get(True, 0), of.get(False, 0)) for lesson, of in sorted(votes.items())]


async def sentences(session: AsyncSession, lesson: str, before: str | None = None) -> tuple[Sequence[Said], str | None]:
    """What was said beside votes, the newest first; and where the next page begins."""
    found = select(Vote).where(SAID).order_by(Vote.id.desc())
    if lesson:
        found = found.where(Vote.lesson == lesson)
    if before:
        found = found.where(Vote.id < before)
    page = list(await session.scalars(found.limit(ROWS + 1)))
    return [Said(one) for one in page[:ROWS]], page[ROWS - 1].id if len(page) > ROWS else None
