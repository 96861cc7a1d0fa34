"""Periodic deletion of old rows. Features list their own cleanup tasks in their ``feature.py``.

The tasks here delete expired sessions, API tokens, links and rate-limit attempts, and accounts that were never
confirmed.

A task works in steps, each a short transaction, so that other writers wait for one step at most. Of several web
processes, one at a time cleans up: the others skip a task meanwhile, until the next hour.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

import structlog
from sqlalchemy import delete, exists
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account, ApiToken, AuthChallenge, AuthSession, EmailLink, Identity, Invitation, Passkey
from app.bus import Bus
from app.database_health import log_failure
from app.db import Database, now, try_advisory_lock
from app.rate_limit import delete_expired_counters
from app.web.dependencies import AppKey

CleanupTask = Callable[[AsyncSession], Awaitable[bool]]
"""Deletes some of a feature's expired rows. Returns True if there are more to delete now."""
CLEANUP_TASKS = AppKey[Sequence[CleanupTask]]("cleanup_tasks")
"""The cleanup tasks of all features."""

_log = structlog.get_logger("house")
_INTERVAL_S = 3600.0
_FIRST_DELAY_S = (60.0, 300.0)
"""Range of the delay before the first cleanup: short enough for servers that restart every night, and random so that
several processes do not start at once."""
_TOPIC = "house"
"""Never published: the subscription only ends the wait when the bus closes."""
_RETENTION = timedelta(days=7)
"""How long an expired link can still explain itself, an expired API token is listed, and an account can stay
unconfirmed."""


async def run_cleanup(db: Database, bus: Bus, sweepers: Sequence[CleanupTask], first_s: float | None = None) -> None:
    """Clean up after ``first_s`` seconds (a random delay by default), then every hour, until the bus closes."""
    wait_s = random.uniform(*_FIRST_DELAY_S) if first_s is None else first_s  # noqa: S311 - nobody gains by guessing it
    with bus.subscribe(_TOPIC) as subscription:
        while not bus.closed:
            await subscription.wait(wait_s)
            wait_s = _INTERVAL_S
            await clean_up(db, sweepers, lambda: bus.closed)


async def clean_up(
    db: Database, sweepers: Sequence[CleanupTask] = (), over: Callable[[], bool] = lambda: False
) -> None:
    """Clean up once: accounts first, then every feature. A task that fails does not stop the others."""
    for each in (_clean_up_accounts, *sweepers):
        try:
            while not over() and await _run_step(db, each):
                pass
        except Exception as e:  # an error in one task must not end cleanup for the rest of the process
            log_failure(_log, "cleanup failed", e)


async def _run_step(db: Database, sweeper: CleanupTask) -> bool:
    async with db.writing() as session:
        return await try_advisory_lock(session, "cleanup") and await sweeper(session)


async def _clean_up_accounts(session: AsyncSession) -> bool:
    moment = now()
    used = [exists().where(table.account_id == Account.id) for table in (AuthSession, Passkey, Identity)]
    never_opened = (
        Account.email_confirmed_at.is_(None),
        Account.created_at < moment - _RETENTION,
        *(~each for each in used),
    )
    await delete_expired_counters(session)
    await session.execute(delete(AuthSession).where(AuthSession.expires_at < moment))
    await session.execute(delete(ApiToken).where(ApiToken.expires_at < moment - _RETENTION))
    await session.execute(delete(AuthChallenge).where(AuthChallenge.expires_at < moment))
    await session.execute(delete(EmailLink).where(EmailLink.expires_at < moment - _RETENTION))
    await session.execute(delete(Invitation).where(Invitation.expires_at < moment - _RETENTION))
    await session.execute(delete(Account).where(*never_opened))
    return False
