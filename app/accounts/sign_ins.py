"""Sign-ins in SQL: a browser holds a random token, SQL its hash. They can be listed, and ended one or all at once."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import delete, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account, SignIn
from app.accounts.tokens import token_hash
from app.db import now

LASTS = timedelta(days=30)
"""After the last time it was used."""
SEEN_TO = timedelta(minutes=5)
"""How exactly that time is kept: a request within it writes nothing."""
FRESH = timedelta(minutes=10)
"""So long after signing in nobody is asked again who they are."""
_MOST_AGENT = 300
_MOST_ADDRESS = 64


async def start_sign_in(
    session: AsyncSession, account: Account, *, method: str, agent: str = "", address: str = ""
) -> str:
    """Sign a browser in: the token for its cookie."""
    token = secrets.token_urlsafe(32)
    moment = now()
    session.add(
        SignIn(
            token_hash=token_hash(token),
            public_id=secrets.token_hex(8),
            account_id=account.id,
            method=method,
            created_at=moment,
            seen_at=moment,
            expires_at=moment + LASTS,
            agent=agent[:_MOST_AGENT],
            address=address[:_MOST_ADDRESS],
        )
    )
    await session.flush()
    return token


async def list_sign_ins(session: AsyncSession, account: Account) -> Sequence[SignIn]:
    """The live ones, the latest used first."""
    live = (SignIn.account_id == account.id, SignIn.expires_at > now())
    return (await session.scalars(select(SignIn).where(*live).order_by(SignIn.seen_at.desc()))).all()


async def see(session: AsyncSession, hashed: str) -> None:
    """Note that it was used just now, and let it last from here."""
    moment = now()
    mine = update(SignIn).where(SignIn.token_hash == hashed)
    await session.execute(mine.values(seen_at=moment, expires_at=moment + LASTS))


async def end_sign_in(session: AsyncSession, hashed: str) -> None:
    """Sign the browser out that holds this token."""
    await session.execute(delete(SignIn).where(SignIn.token_hash == hashed))


async def end_listed(session: AsyncSession, account: Account, public_id: str) -> None:
    """End one of the account's own, by the name the list gives it."""
    await session.execute(delete(SignIn).where(SignIn.account_id == account.id, SignIn.public_id == public_id))


async def end_all(session: AsyncSession, account: Account, but: str | None = None) -> None:
    """End every sign-in of the account, except the one of that hash."""
    theirs = delete(SignIn).where(SignIn.account_id == account.id)
    await session.execute(theirs if but is None else theirs.where(SignIn.token_hash != but))
