"""The outbox: a mail is stored in the transaction of what it tells about, and sent after that has been committed.

Each is claimed by one sender (compare and swap on its state), so no two web processes send the same.
"""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import Any, cast

from sqlalchemy import CursorResult, delete, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.db import Database, now
from app.mail.letter import Mail, write
from app.mail.models import MailState, OutboxMail

TOPIC = "mail"
"""What is woken on the bus once a mail was committed."""
_PAUSES_S = (30, 120, 600, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600)
_ABANDONED = timedelta(minutes=10)
"""A sender is never so long at one mail: whoever had it is gone."""
_KEPT = timedelta(days=30)
"""For so long the operator can see which mails did not arrive."""
_MOST_WHY = 300


def pause_s(tries: int) -> int | None:
    """Seconds until the next try after so many; None if there is none. Pure."""
    return _PAUSES_S[tries - 1] if tries <= len(_PAUSES_S) else None


async def post(session: AsyncSession, mail: Mail) -> None:
    """Have a mail sent once this transaction is committed. Wake ``TOPIC`` then."""
    letter = write(mail)
    moment = now()
    session.add(
        OutboxMail(
            id=secrets.token_hex(16),
            account_id=mail.account_id,
            to=mail.to,
            subject=letter.subject,
            text=letter.text,
            html=letter.html,
            unsubscribe_url=mail.unsubscribe_url,
            state=MailState.waiting,
            tries=0,
            created_at=moment,
            due_at=moment,
            why="",
        )
    )
    await session.flush()


async def claim(db: Database) -> OutboxMail | None:
    """Take the mail that is due longest; nobody else gets it."""
    due = (OutboxMail.state == MailState.waiting, OutboxMail.due_at <= now())
    async with db.session() as session:
        waiting = await session.scalar(select(OutboxMail.id).where(*due).order_by(OutboxMail.due_at).limit(1))
    if waiting is None:
        return None
    async with db.writing() as session:
        mine = update(OutboxMail).where(OutboxMail.id == waiting, *due)
        taken = await session.execute(mine.values(state=MailState.sending, due_at=now(), tries=OutboxMail.tries + 1))
        if cast(CursorResult[Any], taken).rowcount == 0:
            return None
        return await session.get(OutboxMail, waiting)


async def forget(db: Database, mail: OutboxMail) -> None:
    """It was sent."""
    async with db.writing() as session:
        await session.execute(delete(OutboxMail).where(OutboxMail.id == mail.id))


async def put_back(db: Database, mail: OutboxMail, why: str, pause: int) -> None:
    """It was not sent; it is due again in ``pause`` seconds."""
    due_at = now() + timedelta(seconds=pause)
    await _set(db, mail, state=MailState.waiting, due_at=due_at, why=why[:_MOST_WHY])


async def give_up(db: Database, mail: OutboxMail, state: MailState, why: str) -> None:
    """It is not tried again. What it said is forgotten."""
    await _set(db, mail, state=state, why=why[:_MOST_WHY], text="", html="")


async def doubt_abandoned(db: Database) -> int:
    """Mails whose sender has gone are not sent again: they may have arrived. Returns how many there were."""
    lost = update(OutboxMail).where(OutboxMail.state == MailState.sending, OutboxMail.due_at < now() - _ABANDONED)
    async with db.writing() as session:
        found = await session.execute(lost.values(state=MailState.doubtful, why="its sender ended", text="", html=""))
        return cast(CursorResult[Any], found).rowcount


async def sweep(db: Database) -> None:
    """Delete what was given up long ago: an address is kept no longer than it is of use."""
    over = (OutboxMail.state.in_((MailState.failed, MailState.doubtful)), OutboxMail.due_at < now() - _KEPT)
    async with db.writing() as session:
        await session.execute(delete(OutboxMail).where(*over))


async def _set(db: Database, mail: OutboxMail, **values: Any) -> None:
    async with db.writing() as session:
        await session.execute(update(OutboxMail).where(OutboxMail.id == mail.id).values(**values))
