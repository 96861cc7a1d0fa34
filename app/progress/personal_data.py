"""An account's progress: exported, or deleted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account
from app.accounts.visitor_retention import RetentionRule
from app.db import stream_scalars
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
    for table in (LedgerEntry, LessonProgress, LearnerTimeZone):
        await session.execute(delete(table).where(table.learner_id == account.learner_id))


RETENTION_RULES = (
    RetentionRule(LedgerEntry.learner_id, LedgerEntry.occurred_at),
    RetentionRule(LessonProgress.learner_id, LessonProgress.last_seen_at),
    RetentionRule(LearnerTimeZone.learner_id, LearnerTimeZone.updated_at),
)
