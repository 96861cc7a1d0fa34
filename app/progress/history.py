"""A learner's own history from the ledger: XP, active days, and cells that were run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date

from sqlalchemy import select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession

from app.progress.models import LedgerEntry
from app.progress.requirements import LessonTask

ENTRIES_PER_PAGE = 20


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """A page of awards with XP, newest first."""

    entries: Sequence[LedgerEntry]
    number: int
    """Starting at 1."""
    more: bool
    """Whether there are older awards."""


async def load_history(session: AsyncSession, learner_id: str | None, number: int) -> HistoryPage:
    """One page of the awards that brought XP."""
    mine = select(LedgerEntry).where(LedgerEntry.learner_id == learner_id, LedgerEntry.xp > 0)
    newest_first = mine.order_by(LedgerEntry.occurred_at.desc(), LedgerEntry.kind, LedgerEntry.subject)
    found = await session.scalars(newest_first.offset((number - 1) * ENTRIES_PER_PAGE).limit(ENTRIES_PER_PAGE + 1))
    entries = found.all()
    return HistoryPage(entries[:ENTRIES_PER_PAGE], number, len(entries) > ENTRIES_PER_PAGE)


async def load_entries_after(
    session: AsyncSession, learner_id: str, kind: str, subject: str, most: int
) -> Sequence[LedgerEntry]:
    """At most this many awards that brought XP, in the order of the primary key, after the one with this key."""
    mine = select(LedgerEntry).where(LedgerEntry.learner_id == learner_id, LedgerEntry.xp > 0)
    later = mine.where(tuple_(LedgerEntry.kind, LedgerEntry.subject) > (kind, subject))
    return (await session.scalars(later.order_by(LedgerEntry.kind, LedgerEntry.subject).limit(most))).all()


async def load_active_days(session: AsyncSession, learner_id: str | None, since: date) -> set[date]:
    """The days on which the learner was active, in the learner's time zone."""
    mine = (LedgerEntry.learner_id == learner_id, LedgerEntry.kind == "day", LedgerEntry.subject >= since.isoformat())
    return {date.fromisoformat(day) for day in await session.scalars(select(LedgerEntry.subject).where(*mine))}


async def find_cells_run(session: AsyncSession, learner_id: str | None, names: Sequence[str]) -> set[str]:
    """Those of the cells, given as ``course/lesson#cell``, that the learner has run."""
    mine = (LedgerEntry.learner_id == learner_id, LedgerEntry.kind == "cell", LedgerEntry.subject.in_(names))
    return set(await session.scalars(select(LedgerEntry.subject).where(*mine)))


async def find_done_tasks(
    session: AsyncSession, learner_id: str | None, tasks: Collection[LessonTask]
) -> set[LessonTask]:
    """Those of the tasks that the learner has done."""
    if learner_id is None or not tasks:
        return set()
    subjects = [task.subject for task in tasks]
    mine = (LedgerEntry.learner_id == learner_id, LedgerEntry.subject.in_(subjects))
    found = await session.execute(select(LedgerEntry.kind, LedgerEntry.subject).where(*mine))
    return {LessonTask(*row) for row in found} & set(tasks)


async def find_exercise_awards(session: AsyncSession, learner_id: str | None, lesson: str) -> dict[str, set[str]]:
    """What a learner has earned in the exercises of a lesson (``course/slug``), by cell.

    For each exercise: the names of its passed checks, and "" once it was passed.
    """
    found: defaultdict[str, set[str]] = defaultdict(set)
    if learner_id is None:
        return found
    mine = (LedgerEntry.learner_id == learner_id, LedgerEntry.kind.in_(("check", "exercise")))
    subjects = select(LedgerEntry.subject).where(*mine, LedgerEntry.subject.startswith(f"{lesson}#", autoescape=True))
    for subject in await session.scalars(subjects):
        cell, _, check = subject.partition("#")[2].partition("/")
        found[cell].add(check)
    return found
