"""What progress hands on of a learner with an account: to themselves as data, or to nobody."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.departed import Trace
from app.accounts.models import Account
from app.db import delete_some, each
from app.progress.models import Entry, LearnerZone, LessonProgress

_OF_LESSON = ("lesson", "started_at", "end_reached_at", "completed_at", "revisited_at", "seen_at", "place")


async def export_progress(session: AsyncSession, account: Account) -> AsyncIterator[Mapping[str, Any]]:
    """Every award, in order, and how far each lesson is."""
    mine = select(Entry).where(Entry.learner_id == account.learner_id)
    async for entry in each(session, mine.order_by(Entry.at, Entry.kind, Entry.subject)):
        yield {"kind": entry.kind, "subject": entry.subject, "xp": entry.xp, "at": entry.at}
    async for row in each(session, select(LessonProgress).where(LessonProgress.learner_id == account.learner_id)):
        yield {"kind": "reading", **{name: getattr(row, name) for name in _OF_LESSON}}


async def erase_progress(session: AsyncSession, account: Account) -> None:
    """Delete all of it."""
    for table in (Entry, LessonProgress, LearnerZone):
        await session.execute(delete(table).where(table.learner_id == account.learner_id))


async def _forget_awards(session: AsyncSession, learner: str, before: datetime, most: int) -> int:
    return await delete_some(session, Entry, most, Entry.learner_id == learner, Entry.at < before)


async def _forget_lessons(session: AsyncSession, learner: str, before: datetime, most: int) -> int:
    mine = (LessonProgress.learner_id == learner, LessonProgress.seen_at < before)
    return await delete_some(session, LessonProgress, most, *mine)


async def _forget_zone(session: AsyncSession, learner: str, before: datetime, most: int) -> int:
    return await delete_some(
        session, LearnerZone, most, LearnerZone.learner_id == learner, LearnerZone.said_at < before
    )


TRACES = (
    Trace(Entry.learner_id, Entry.at, _forget_awards),
    Trace(LessonProgress.learner_id, LessonProgress.seen_at, _forget_lessons),
    Trace(LearnerZone.learner_id, LearnerZone.said_at, _forget_zone),
)
