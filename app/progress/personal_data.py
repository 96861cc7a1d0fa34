"""An account's progress: exported, or deleted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account
from app.accounts.visitor_retention import RetentionRule
from app.db import delete_batch, stream_scalars
from app.progress.models import LearnerTimeZone, LedgerEntry, LessonProgress

_LESSON_COLUMNS = ("lesson", "started_at", "end_reached_at", "completed_at", "revisited_at", "last_seen_at", "anchor")


async def export_progress(session: AsyncSession, account: Account) -> AsyncIterator[Mapping[str, Any]]:
    """All awards in order, and the progress in each lesson."""
    mine = select(LedgerEntry).where(LedgerEntry.learner_id == account.learner_id)
    async for entry in stream_scalars(
        session, mine.order_by(LedgerEntry.occurred_at, LedgerEntry.kind, LedgerEntry.subject)
    ):
        yield {"kind": entry.kind, "subject": entry.subject, "xp": entry.xp, "occurred_at": entry.occurred_at}
    async for row in stream_scalars(
        session, select(LessonProgress).where(LessonProgress.learner_id == account.learner_id)
    ):
        yield {"kind": "lesson_progress", **{name: getattr(row, name) for name in _LESSON_COLUMNS}}


async def erase_progress(session: AsyncSession, account: Account) -> None:
    """Delete an account's progress."""
    for table in (LedgerEntry, LessonProgress, LearnerTimeZone):
        await session.execute(delete(table).where(table.learner_id == account.learner_id))


async def _purge_awards(session: AsyncSession, learner: str, before: datetime, most: int) -> int:
    return await delete_batch(
        session, LedgerEntry, most, LedgerEntry.learner_id == learner, LedgerEntry.occurred_at < before
    )


async def _purge_lessons(session: AsyncSession, learner: str, before: datetime, most: int) -> int:
    mine = (LessonProgress.learner_id == learner, LessonProgress.last_seen_at < before)
    return await delete_batch(session, LessonProgress, most, *mine)


async def _purge_timezone(session: AsyncSession, learner: str, before: datetime, most: int) -> int:
    return await delete_batch(
        session, LearnerTimeZone, most, LearnerTimeZone.learner_id == learner, LearnerTimeZone.updated_at < before
    )


RETENTION_RULES = (
    RetentionRule(LedgerEntry.learner_id, LedgerEntry.occurred_at, _purge_awards),
    RetentionRule(LessonProgress.learner_id, LessonProgress.last_seen_at, _purge_lessons),
    RetentionRule(LearnerTimeZone.learner_id, LearnerTimeZone.updated_at, _purge_timezone),
)
