"""Ends live streams when the account they belong to is disabled.

``lockstep user disable`` is another process, and so is every other web process: they share only the database. Each web
process therefore looks up, once a second, whether one of the accounts it has streams for was disabled in the meantime.
Without such streams, it asks nothing. ``app.runs.disabled_accounts`` does the same for runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import structlog
from fastapi import Depends
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from app.accounts.models import Account
from app.bus import Bus
from app.database_health import log_failure
from app.db import Database
from app.web.dependencies import AppKey

POLL_INTERVAL_S = 1.0
_BATCH_SIZE = 500

_log = structlog.get_logger("accounts")


class DisabledAccounts:
    """One per process."""

    def __init__(self, db: Database, bus: Bus) -> None:
        self._db = db
        self._bus = bus
        self._watched: dict[str, set[asyncio.Event]] = {}

    @contextmanager
    def watch(self, learner: str | None) -> Iterator[asyncio.Event]:
        """Yields an event that is set soon after the learner's account was disabled; never for visitors."""
        disabled = asyncio.Event()
        key = learner or ""
        self._watched.setdefault(key, set()).add(disabled)
        try:
            yield disabled
        finally:
            self._watched[key].discard(disabled)
            if not self._watched[key]:
                del self._watched[key]

    async def follow(self) -> None:
        """Look for disabled accounts until the bus is closed."""
        with self._bus.subscribe("disabled accounts") as subscription:
            while not self._bus.closed:
                await subscription.wait(POLL_INTERVAL_S)
                try:
                    await self._look()
                except (SQLAlchemyError, OSError) as e:
                    log_failure(_log, "disabled accounts cannot be read", e)

    async def _look(self) -> None:
        learners = list(self._watched)
        for start in range(0, len(learners), _BATCH_SIZE):
            some = Account.learner_id.in_(learners[start : start + _BATCH_SIZE])
            async with self._db.session() as session:
                found = await session.scalars(select(Account.learner_id).where(some, Account.disabled_at.is_not(None)))
                for learner in found:
                    for disabled in self._watched.get(learner, ()):
                        disabled.set()


DISABLED_ACCOUNTS = AppKey[DisabledAccounts]("disabled_accounts")
"""Set while the application runs."""
DisabledAccountsDep = Annotated[DisabledAccounts, Depends(DISABLED_ACCOUNTS.from_request)]
