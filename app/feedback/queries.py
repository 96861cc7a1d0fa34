"""Reading feedback: pages that continue after the last ID shown, and counts of votes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account
from app.feedback.models import HAS_COMMENT, IS_OPEN, LessonVote, ProblemKind, ProblemReport
from app.web.user_text import escape_bidi_controls

PAGE_SIZE = 30
"""Rows per page."""


class ProblemStatus(StrEnum):
    """Which problem reports the inbox shows."""

    open = "open"
    resolved = "resolved"
    all = "all"


@dataclass(frozen=True, slots=True)
class InboxFilter:
    """The filter of the inbox; None and an empty lesson match everything."""

    which: ProblemStatus = ProblemStatus.open
    kind: ProblemKind | None = None
    lesson: str = ""


@dataclass(frozen=True, slots=True)
class ProblemRow:
    """A problem report in the inbox. ``author`` is None for a visitor."""

    problem: ProblemReport
    author: Account | None
    handler: Account | None

    @property
    def text(self) -> str:
        """The text, with bidirectional control characters made visible."""
        return escape_bidi_controls(self.problem.text)


@dataclass(frozen=True, slots=True)
class VoteComment:
    vote: LessonVote

    @property
    def text(self) -> str:
        """The text, with bidirectional control characters made visible."""
        return escape_bidi_controls(self.vote.comment)


@dataclass(frozen=True, slots=True)
class VoteCount:
    """The numbers of yes and no votes on a lesson."""

    lesson: str
    yes: int
    no: int

    @property
    def share(self) -> float:
        """The share of yes votes: 0 to 1."""
        return self.yes / (self.yes + self.no)


async def list_problem_reports(
    session: AsyncSession, narrowed: InboxFilter, before: str | None = None
) -> tuple[Sequence[ProblemRow], str | None]:
    """A page of problem reports, newest first, and the cursor of the next page."""
    found = select(ProblemReport).order_by(ProblemReport.id.desc())
    if narrowed.which is ProblemStatus.open:
        found = found.where(IS_OPEN)
    elif narrowed.which is ProblemStatus.resolved:
        found = found.where(ProblemReport.resolved_at.is_not(None))
    if narrowed.kind:
        found = found.where(ProblemReport.kind == narrowed.kind)
    if narrowed.lesson:
        found = found.where(ProblemReport.lesson == narrowed.lesson)
    if before:
        found = found.where(ProblemReport.id < before)
    page = list(await session.scalars(found.limit(PAGE_SIZE + 1)))
    return await load_problem_rows(session, page[:PAGE_SIZE]), page[PAGE_SIZE - 1].id if len(page) > PAGE_SIZE else None


async def load_problem_rows(session: AsyncSession, found: Sequence[ProblemReport]) -> Sequence[ProblemRow]:
    """The problem reports with the people who reported and resolved them."""
    learners = {one.learner_id for one in found if one.learner_id}
    handlers = {one.resolved_by for one in found if one.resolved_by}
    people = select(Account).where(Account.learner_id.in_(learners) | Account.id.in_(handlers))
    known = list(await session.scalars(people)) if learners or handlers else []
    by_learner = {account.learner_id: account for account in known}
    by_id = {account.id: account for account in known}
    return [ProblemRow(one, by_learner.get(one.learner_id or ""), by_id.get(one.resolved_by or "")) for one in found]


async def count_votes(session: AsyncSession) -> Sequence[VoteCount]:
    """The counts of all lessons with votes, by lesson."""
    found = select(LessonVote.lesson, LessonVote.helpful, func.count()).group_by(LessonVote.lesson, LessonVote.helpful)
    votes: dict[str, dict[bool, int]] = {}
    for lesson, helpful, number in await session.execute(found):
        votes.setdefault(lesson, {})[helpful] = number
    return [VoteCount(lesson, of.get(True, 0), of.get(False, 0)) for lesson, of in sorted(votes.items())]


async def list_vote_comments(
    session: AsyncSession, lesson: str, before: str | None = None
) -> tuple[Sequence[VoteComment], str | None]:
    """A page of comments on votes, newest first, and the cursor of the next page."""
    found = select(LessonVote).where(HAS_COMMENT).order_by(LessonVote.id.desc())
    if lesson:
        found = found.where(LessonVote.lesson == lesson)
    if before:
        found = found.where(LessonVote.id < before)
    page = list(await session.scalars(found.limit(PAGE_SIZE + 1)))
    return [VoteComment(one) for one in page[:PAGE_SIZE]], page[PAGE_SIZE - 1].id if len(page) > PAGE_SIZE else None
