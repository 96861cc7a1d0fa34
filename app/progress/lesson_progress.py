"""Learners' progress in lessons: when each was started, completed and revisited, and where the learner left off.

Merging keeps the earliest of each timestamp, but the latest ``last_seen_at`` with its ``anchor``. So the result does
not depend on the order of updates, on duplicates, or on how many browsers send them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from app.progress import timezones
from app.progress.events import LearningEvent
from app.progress.models import LessonProgress
from app.progress.requirements import LearnerEvents, Requirements


@dataclass(frozen=True, slots=True)
class LessonVisit:
    """A visit to a lesson, from one source."""

    lesson: str
    started_at: datetime
    last_seen_at: datetime
    end_reached_at: datetime | None = None
    anchor: str = ""


async def record_visits(
    session: AsyncSession, learner_id: str, visits: Iterable[LessonVisit], *, only_opened: bool = False
) -> list[LearningEvent]:
    """Store visits of a locked learner. Returns the events that they claim.

    ``only_opened`` ignores visits to lessons that the learner has not opened yet.
    """
    rows = await _load_rows(session, learner_id)
    facts = []
    for visit in visits:
        row = rows.get(visit.lesson)
        if row is None and only_opened:
            continue
        if row is None:
            row = rows[visit.lesson] = LessonProgress(
                learner_id=learner_id,
                lesson=visit.lesson,
                started_at=visit.started_at,
                last_seen_at=visit.last_seen_at,
                anchor="",
            )
            session.add(row)
        _apply_visit(row, visit)
        if visit.end_reached_at is not None:
            facts.append(LearningEvent("read", visit.lesson))
    await session.flush()
    return facts


async def update_completions(
    session: AsyncSession, learner_id: str, known: LearnerEvents, terms: Requirements
) -> list[LearningEvent]:
    """Store which lessons are now completed. Returns events for those that were revisited on a later day."""
    open_ones = select(LessonProgress).where(LessonProgress.learner_id == learner_id)
    where: ZoneInfo | None = None
    facts = []
    for row in await session.scalars(open_ones.where(LessonProgress.revisited_at.is_(None))):
        lesson = row.lesson
        if lesson not in known.by_kind["lesson"]:
            continue
        row.completed_at = _earliest(row.completed_at, known.completed_at(lesson, terms))
        if row.completed_at is None or row.last_seen_at <= row.completed_at:
            continue
        where = where or await timezones.learner_timezone(session, learner_id)
        if row.last_seen_at.astimezone(where).date() > row.completed_at.astimezone(where).date():
            row.revisited_at = _earliest(row.revisited_at, row.last_seen_at)
            facts.append(LearningEvent("revisit", lesson))
    await session.flush()
    return facts


async def load_lessons_after(
    session: AsyncSession, learner_id: str, lesson: str, most: int
) -> Sequence[LessonProgress]:
    """At most this many rows of a learner, in the order of the lessons' keys, after the one of this lesson."""
    mine = select(LessonProgress).where(LessonProgress.learner_id == learner_id, LessonProgress.lesson > lesson)
    return (await session.scalars(mine.order_by(LessonProgress.lesson).limit(most))).all()


async def merge_lessons(session: AsyncSession, from_learner: str, to_learner: str) -> None:
    """Merge one learner's rows into another's."""
    rows = await _load_rows(session, to_learner)
    for lesson, coming in sorted((await _load_rows(session, from_learner)).items()):
        there = rows.get(lesson)
        if there is None:
            coming.learner_id = to_learner
        else:
            await _merge_row(session, there, coming)
    await session.flush()


async def rename_lesson(session: AsyncSession, before: str, after: str) -> None:
    """Move the rows of a lesson that was renamed. A learner who has opened it under both names gets one row."""
    moving = (await session.scalars(select(LessonProgress).where(LessonProgress.lesson == before))).all()
    learners = select(LessonProgress.learner_id).where(LessonProgress.lesson == before)
    both = select(LessonProgress).where(LessonProgress.lesson == after, LessonProgress.learner_id.in_(learners))
    there = {row.learner_id: row for row in await session.scalars(both)}
    for coming in moving:
        if (row := there.get(coming.learner_id)) is None:
            coming.lesson = after
        else:
            await _merge_row(session, row, coming)
    await session.flush()


async def _merge_row(session: AsyncSession, there: LessonProgress, coming: LessonProgress) -> None:
    """Merge a row into another one."""
    visit = LessonVisit(there.lesson, coming.started_at, coming.last_seen_at, coming.end_reached_at, coming.anchor)
    _apply_visit(there, visit)
    there.completed_at = _earliest(there.completed_at, coming.completed_at)
    there.revisited_at = _earliest(there.revisited_at, coming.revisited_at)
    await session.delete(coming)


def _apply_visit(row: LessonProgress, visit: LessonVisit) -> None:
    row.started_at = min(row.started_at, visit.started_at)
    row.end_reached_at = _earliest(row.end_reached_at, visit.end_reached_at)
    if (visit.last_seen_at, visit.anchor) >= (row.last_seen_at, row.anchor):
        row.last_seen_at, row.anchor = visit.last_seen_at, visit.anchor


def _earliest(*moments: datetime | None) -> datetime | None:
    return min((moment for moment in moments if moment is not None), default=None)


async def _load_rows(session: AsyncSession, learner_id: str) -> dict[str, LessonProgress]:
    rows = select(LessonProgress).where(LessonProgress.learner_id == learner_id)
    return {row.lesson: row for row in await session.scalars(rows)}
