"""What nobody needs any more is swept away; features add theirs in their ``feature.py``.

Sign-ins and links that are over, tries that are forgotten, accounts that were never opened.

A sweeper works in steps, each a short transaction: whoever wants to write meanwhile waits for one step at most.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

import structlog
from sqlalchemy import delete, exists
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account, AuthChallenge, AuthSession, EmailLink, Identity, Invitation, Passkey
from app.bus import Bus
from app.database_health import log_failure
from app.db import Database, now
from app.rate_limit import delete_expired_counters
from app.web.dependencies import AppKey

CleanupTask = Callable[[AsyncSession], Awaitable[bool]]
"""Deletes some of what a feature has kept long enough; True if there is more to do now."""
CLEANUP_TASKS = AppKey[Sequence[CleanupTask]]("cleanup_tasks")
"""Those of all features."""

_log = structlog.get_logger("house")
_INTERVAL_S = 3600.0
_FIRST_DELAY_S = (60.0, 300.0)
"""When the first sweep comes after the start: also where a server is started anew every night, and never several
processes at once."""
_TOPIC = "house"
"""Never published: a cleanup hears nothing but the end of the bus."""
_RETENTION = timedelta(days=7)
"""So long a link that is over still says why; so long an account waits to be opened."""


async def run_cleanup(db: Database, bus: Bus, sweepers: Sequence[CleanupTask], first_s: float | None = None) -> None:
    """Sweep soon after the start (``first_s``, or a while by chance) and every hour, until the bus is closed."""
    wait_s = random.uniform(*_FIRST_DELAY_S) if first_s is None else first_s  # noqa: S311 - nobody gains by guessing it
    with bus.subscribe(_TOPIC) as subscription:
        while not bus.closed:
            await subscription.wait(wait_s)
            wait_s = _INTERVAL_S
            await clean_up(db, sweepers, lambda: bus.closed)


async def clean_up(
    db: Database, sweepers: Sequence[CleanupTask] = (), over: Callable[[], bool] = lambda: False
) -> None:
    """Sweep once: accounts, then what the features above them keep. One that fails keeps no other from its work."""
    for each in (_clean_up_accounts, *sweepers):
        try:
            while not over() and await _run_step(db, each):
                pass
        except Exception as e:  # a mistake in one must not end housekeeping for as long as the process lives
            log_failure(_log, "old rows could not be swept away", e)


async def _run_step(db: Database, sweeper: CleanupTask) -> bool:
    async with db.writing() as session:
        return await sweeper(session)


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
    await session.execute(delete(AuthChallenge).where(AuthChallenge.expires_at < moment))
    await session.execute(delete(EmailLink).where(EmailLink.expires_at < moment - _RETENTION))
    await session.execute(delete(Invitation).where(Invitation.expires_at < moment - _RETENTION))
    await session.execute(delete(Account).where(*never_opened))
    return False
