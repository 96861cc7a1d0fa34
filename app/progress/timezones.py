"""A learner's time zone: the account's if it has chosen one, else the one last reported by the browser, else UTC."""

from __future__ import annotations

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account
from app.db import now
from app.progress.models import LearnerTimeZone

DEFAULT_TIMEZONE = "UTC"
"""An account with this zone has not chosen one."""


def get_timezone(name: str | None) -> ZoneInfo:
    """The zone with this name; UTC if the name is unknown."""
    try:
        return ZoneInfo(name or DEFAULT_TIMEZONE)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo(DEFAULT_TIMEZONE)


def is_timezone(name: str) -> bool:
    """Whether a zone with this name exists."""
    return bool(name) and (name == DEFAULT_TIMEZONE or get_timezone(name).key == name)


def choose_timezone(of_account: str | None, of_browser: str | None) -> ZoneInfo:
    return get_timezone(of_account if of_account not in (None, "", DEFAULT_TIMEZONE) else of_browser)


async def learner_timezone(session: AsyncSession, learner_id: str) -> ZoneInfo:
    of_account = select(Account.time_zone).where(Account.learner_id == learner_id).scalar_subquery()
    of_browser = select(LearnerTimeZone.time_zone).where(LearnerTimeZone.learner_id == learner_id).scalar_subquery()
    return choose_timezone(*(await session.execute(select(of_account, of_browser))).one())


async def record_timezone(session: AsyncSession, learner_id: str, name: str) -> None:
    """Store the zone that the browser reports; unknown zones are ignored."""
    if not is_timezone(name):
        return
    there = await session.get(LearnerTimeZone, learner_id)
    if there is None:
        session.add(LearnerTimeZone(learner_id=learner_id, time_zone=name, updated_at=now()))
    elif there.time_zone != name:
        there.time_zone, there.updated_at = name, now()
    await session.flush()


async def merge_timezone(session: AsyncSession, from_learner: str, to_learner: str) -> None:
    """Keep the zone that was reported last."""
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
