"""The outbox: emails are stored in the transaction of the change that they report, and sent after the commit.

A worker claims each email first (compare and swap of its state), so that no two web processes send the same one.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast

from sqlalchemy import CursorResult, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.bus import publish_on_commit
from app.db import Database, now
from app.mail.models import EmailState, OutboxEmail
from app.mail.renderer import TemplatedEmail, render_email

TOPIC = "mail"
"""Published when the outbox has a new email."""
_RETRY_DELAYS_S = (30, 120, 600, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600)
_ABANDONED_AFTER = timedelta(minutes=10)
"""No worker takes this long for one email: it must have ended."""
_RETENTION = timedelta(days=30)
"""How long an operator can look up undelivered emails."""
_MAX_ERROR_LENGTH = 300


def retry_delay_s(attempts: int) -> int | None:
    """Seconds until the next attempt after this many; None if there are no more. Pure."""
    return _RETRY_DELAYS_S[attempts - 1] if attempts <= len(_RETRY_DELAYS_S) else None


async def enqueue(session: AsyncSession, mail: TemplatedEmail, created_at: datetime | None = None) -> None:
    """Send an email once this transaction is committed. ``created_at``: the time by which its sender finds it again."""
    letter = render_email(mail)
    moment = now()
    session.add(
        OutboxEmail(
            id=secrets.token_hex(16),
            account_id=mail.account_id,
            sender_id=mail.sender_id,
            recipient=mail.to,
            subject=letter.subject,
            text=letter.text,
            html=letter.html,
            unsubscribe_url=mail.unsubscribe_url,
            state=EmailState.waiting,
            attempts=0,
            created_at=created_at or moment,
            due_at=moment,
            last_error="",
        )
    )
    await session.flush()
    publish_on_commit(session, TOPIC)


async def claim(db: Database) -> OutboxEmail | None:
    """Claim the email that has been due longest, so that no other worker sends it."""
    due = (OutboxEmail.state == EmailState.waiting, OutboxEmail.due_at <= now())
    async with db.session() as session:
        waiting = await session.scalar(select(OutboxEmail.id).where(*due).order_by(OutboxEmail.due_at).limit(1))
    if waiting is None:
        return None
    async with db.writing() as session:
        mine = update(OutboxEmail).where(OutboxEmail.id == waiting, *due)
        taken = await session.execute(
            mine.values(state=EmailState.sending, due_at=now(), attempts=OutboxEmail.attempts + 1)
        )
        if cast(CursorResult[Any], taken).rowcount == 0:
            return None
        return await session.get(OutboxEmail, waiting)


@dataclass(frozen=True, slots=True)
class OutboxState:
    """How many emails there are in each state, and since when the oldest one waits, if any does."""

    count: Mapping[str, int]
    oldest_waiting: datetime | None


async def read_state(db: Database) -> OutboxState:
    states = select(OutboxEmail.state, func.count(), func.min(OutboxEmail.created_at)).group_by(OutboxEmail.state)
    async with db.session() as session:
        found = {state: (count, oldest) for state, count, oldest in await session.execute(states)}
    oldest = found.get(EmailState.waiting, (0, None))[1]
    return OutboxState({state: count for state, (count, _) in found.items()}, oldest)


async def delete_sent(db: Database, mail: OutboxEmail) -> None:
    async with db.writing() as session:
        await session.execute(delete(OutboxEmail).where(OutboxEmail.id == mail.id))


async def reschedule(db: Database, mail: OutboxEmail, error: str, pause: int) -> None:
    """Schedule another attempt in ``pause`` seconds."""
    due_at = now() + timedelta(seconds=pause)
    await _update(db, mail, state=EmailState.waiting, due_at=due_at, last_error=error[:_MAX_ERROR_LENGTH])


async def mark_failed(db: Database, mail: OutboxEmail, state: EmailState, error: str) -> None:
    """Give up on an email. Its text is deleted."""
    await _update(db, mail, state=state, last_error=error[:_MAX_ERROR_LENGTH], text="", html="")


async def mark_abandoned_unconfirmed(db: Database) -> int:
    """Give up on emails whose worker has ended: they may have arrived. Returns how many there were."""
    lost = update(OutboxEmail).where(
        OutboxEmail.state == EmailState.sending, OutboxEmail.due_at < now() - _ABANDONED_AFTER
    )
    async with db.writing() as session:
        found = await session.execute(
            lost.values(state=EmailState.unconfirmed, last_error="the worker ended", text="", html="")
        )
        return cast(CursorResult[Any], found).rowcount


async def delete_expired(db: Database) -> None:
    """Delete emails that failed long ago: an address is not kept longer than it is useful."""
    over = (OutboxEmail.state.in_((EmailState.failed, EmailState.unconfirmed)), OutboxEmail.due_at < now() - _RETENTION)
    async with db.writing() as session:
        await session.execute(delete(OutboxEmail).where(*over))


async def _update(db: Database, mail: OutboxEmail, **values: Any) -> None:
    async with db.writing() as session:
        await session.execute(update(OutboxEmail).where(OutboxEmail.id == mail.id).values(**values))
