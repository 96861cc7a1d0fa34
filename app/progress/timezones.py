"""The learner's own time zone: of the account if it has chosen one, else what the browser said last, else UTC."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account
from app.db import now
from app.progress.models import LearnerTimeZone

DEFAULT_TIMEZONE = "UTC"
"""An account of this zone has not chosen any."""


def get_timezone(name: str | None) -> ZoneInfo:
    """The zone of that name; UTC for a name that is none."""
    try:
        return ZoneInfo(name or DEFAULT_TIMEZONE)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo(DEFAULT_TIMEZONE)


def is_timezone(name: str) -> bool:
    """Whether there is a zone of that name."""
    return bool(name) and (name == DEFAULT_TIMEZONE or get_timezone(name).key == name)


def choose_timezone(of_account: str | None, of_browser: str | None) -> ZoneInfo:
    """The zone that counts."""
    return get_timezone(of_account if of_account not in (None, "", DEFAULT_TIMEZONE) else of_browser)


async def learner_timezone(session: AsyncSession, learner_id: str) -> ZoneInfo:
    """A learner's time zone."""
    of_account = select(Account.time_zone).where(Account.learner_id == learner_id).scalar_subquery()
    of_browser = select(LearnerTimeZone.time_zone).where(LearnerTimeZone.learner_id == learner_id).scalar_subquery()
    return choose_timezone(*(await session.execute(select(of_account, of_browser))).one())


async def record_timezone(session: AsyncSession, learner_id: str, name: str) -> None:
    """Note what the browser says; what is no zone is left out."""
    if not is_timezone(name):
        return
    there = await session.get(LearnerTimeZone, learner_id)
    if there is None:
        session.add(LearnerTimeZone(learner_id=learner_id, time_zone=name, updated_at=now()))
    elif there.time_zone != name:
        there.time_zone, there.updated_at = name, now()
    await session.flush()


async def merge_timezone(session: AsyncSession, from_learner: str, to_learner: str) -> None:
    """What was said last counts."""
    coming, there = [await session.get(LearnerTimeZone, learner) for learner in (from_learner, to_learner)]
    if coming is None:
        return
    name, updated_at = coming.time_zone, coming.updated_at
    await session.execute(delete(LearnerTimeZone).where(LearnerTimeZone.learner_id == from_learner))
    if there is None:
        session.add(LearnerTimeZone(learner_id=to_learner, time_zone=name, updated_at=updated_at))
    elif updated_at > there.updated_at:
        there.time_zone, there.updated_at = name, updated_at
    await session.flush()


def to_local_time(moment: datetime, where: ZoneInfo) -> datetime:
    """The moment as clocks there show it."""
    return moment.astimezone(where)
