"""Site switches: states of the whole site that an admin sets in the database and every web process follows.

Each process reads them once a second, and at once when it changed one itself. Reading a page asks the database nothing.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import structlog
from sqlalchemy import String, delete, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from app.bus import Bus, publish_on_commit
from app.database_health import log_failure
from app.db import Base, Database, UtcDateTime, dialect_insert, now
from app.errors import ServiceUnavailable
from app.i18n import N_

POLL_INTERVAL_S = 1.0
_TOPIC = "site switches"

_log = structlog.get_logger("site")


class Switch(StrEnum):
    maintenance = "maintenance"
    """Only admins sign in and change anything."""
    drain = "drain"
    """The runner starts no new sessions."""


class UnderMaintenance(ServiceUnavailable):
    message = N_(
        "This site is under maintenance. You can read the lessons, but not sign in, run or save anything. "
        "What you saved before is still there. Try again in a few minutes."
    )
    retry_after_s = 300


class SiteSwitch(Base):
    """A switch that is on; one that is off has no row."""

    __tablename__ = "site_switches"

    name: Mapped[str] = mapped_column(String(20), primary_key=True)
    since: Mapped[datetime] = mapped_column(UtcDateTime)


async def turn(session: AsyncSession, switch: Switch, *, on: bool) -> bool:
    """Turn a switch on or off once this transaction is committed. Returns False if it was so already."""
    before = await is_on(session, switch)
    if on:
        row = dialect_insert(session, SiteSwitch).values(name=switch, since=now())
        await session.execute(row.on_conflict_do_nothing())
    else:
        await session.execute(delete(SiteSwitch).where(SiteSwitch.name == switch))
    publish_on_commit(session, _TOPIC)
    return before is not on


async def is_on(session: AsyncSession, switch: Switch) -> bool:
    """Whether a switch is on in the database right now."""
    return await session.get(SiteSwitch, switch, populate_existing=True) is not None


class SwitchStates:
    """What this process knows of the switches. One per process."""

    def __init__(self) -> None:
        self._since: dict[Switch, datetime] = {}

    def since(self, switch: Switch) -> datetime | None:
        """Since when a switch is on; None if it is off."""
        return self._since.get(switch)

    @property
    def edition(self) -> str:
        """Differs when another set of switches is on: pages show them."""
        return " ".join(sorted(self._since))

    async def refresh(self, db: Database) -> None:
        """Read them now."""
        async with db.session() as session:
            rows = list(await session.scalars(select(SiteSwitch)))
        known = list(Switch)
        self._since = {Switch(row.name): row.since for row in rows if row.name in known}

    async def follow(self, db: Database, bus: Bus) -> None:
        """Read them again and again until the bus is closed. While the database is down, they stay as they are."""
        with bus.subscribe(_TOPIC) as subscription:
            while not bus.closed:
                try:
                    await self.refresh(db)
                except (SQLAlchemyError, OSError) as e:
                    log_failure(_log, "the site switches cannot be read", e)
                await subscription.wait(POLL_INTERVAL_S)
