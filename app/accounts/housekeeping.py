"""What nobody needs any more is swept away; features add theirs in ``main``.

Sign-ins and links that are over, tries that are forgotten, accounts that were never opened.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

import structlog
from sqlalchemy import delete, exists
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts import attempts
from app.accounts.models import Account, Handshake, Identity, Invitation, MailLink, Passkey, SignIn
from app.bus import Bus
from app.db import Database, now

Sweeper = Callable[[AsyncSession], Awaitable[None]]
"""Deletes what a feature has kept long enough."""

_log = structlog.get_logger("house")
_EVERY_S = 3600.0
_TOPIC = "house"
"""Nobody wakes it but the end."""
_KEPT = timedelta(days=7)
"""So long a link that is over still says why; so long an account waits to be opened."""


async def keep_house(db: Database, bus: Bus, sweepers: Sequence[Sweeper]) -> None:
    """Sweep every hour, until the bus is closed."""
    with bus.listen(_TOPIC) as bell:
        while not bus.closed:
            await bell.wait(_EVERY_S)
            if bus.closed:
                return
            try:
                await sweep(db, sweepers)
            except (SQLAlchemyError, OSError):
                _log.exception("old rows could not be swept away")


async def sweep(db: Database, sweepers: Sequence[Sweeper] = ()) -> None:
    """Sweep once: accounts, then what the features above them keep."""
    for each in (_sweep_accounts, *sweepers):
        async with db.writing() as session:
            await each(session)


async def _sweep_accounts(session: AsyncSession) -> None:
    moment = now()
    used = [exists().where(table.account_id == Account.id) for table in (SignIn, Passkey, Identity)]
    never_opened = (
        Account.email_confirmed_at.is_(None),
        Account.created_at < moment - _KEPT,
        *(~each for each in used),
    )
    await attempts.sweep(session)
    await session.execute(delete(SignIn).where(SignIn.expires_at < moment))
    await session.execute(delete(Handshake).where(Handshake.expires_at < moment))
    await session.execute(delete(MailLink).where(MailLink.expires_at < moment - _KEPT))
    await session.execute(delete(Invitation).where(Invitation.expires_at < moment - _KEPT))
    await session.execute(delete(Account).where(*never_opened))
