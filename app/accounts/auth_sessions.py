"""Auth sessions: the browser holds a random token, SQL its hash. Accounts can list and end theirs."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import delete, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account, ApiToken, AuthSession
from app.accounts.tokens import token_hash
from app.db import now

AUTH_SESSION_LIFETIME = timedelta(days=30)
"""Counted from its last use."""
MAX_AUTH_SESSION_LIFETIME = timedelta(days=90)
"""Counted from signing in, however often it is used."""
SECOND_STEP_LIFETIME = timedelta(minutes=10)
"""How long a sign-in waits for the code of its second step."""
SEEN_AT_PRECISION = timedelta(minutes=5)
"""How precisely the last use is recorded: a request within this time writes nothing."""
REAUTHENTICATE_AFTER = timedelta(minutes=10)
"""How long after signing in an account without a password can make sensitive changes."""
_MAX_USER_AGENT = 300
_MAX_IP_ADDRESS = 64


async def create_auth_session(
    session: AsyncSession,
    account: Account,
    *,
    method: str,
    user_agent: str = "",
    ip_address: str = "",
    pending: bool = False,
    signed_in_at: datetime | None = None,
) -> str:
    """Sign a browser in, or with ``pending`` after a second step. Returns the token for its cookie.

    ``signed_in_at``: when the browser signed in whose session this one replaces.
    """
    token = secrets.token_urlsafe(32)
    moment = now()
    created_at = signed_in_at or moment
    lasts_until = min(moment + AUTH_SESSION_LIFETIME, created_at + MAX_AUTH_SESSION_LIFETIME)
    session.add(
        AuthSession(
            token_hash=token_hash(token),
            public_id=secrets.token_hex(8),
            account_id=account.id,
            method=method,
            pending=pending,
            created_at=created_at,
            last_seen_at=moment,
            expires_at=moment + SECOND_STEP_LIFETIME if pending else lasts_until,
            user_agent=user_agent[:_MAX_USER_AGENT],
            ip_address=ip_address[:_MAX_IP_ADDRESS],
        )
    )
    await session.flush()
    return token


async def find_pending_session(session: AsyncSession, hashed: str | None) -> tuple[AuthSession, Account] | None:
    """The sign-in that waits for a code in the browser whose token has this hash, and its account."""
    waiting = select(AuthSession, Account).join(Account, Account.id == AuthSession.account_id)
    mine = (AuthSession.token_hash == hashed, AuthSession.expires_at > now(), AuthSession.pending.is_(True))
    found = (await session.execute(waiting.where(*mine))).one_or_none() if hashed else None
    return (found[0], found[1]) if found is not None else None


async def list_auth_sessions(session: AsyncSession, account: Account) -> Sequence[AuthSession]:
    """The sessions that have not expired, most recently used first."""
    live = (AuthSession.account_id == account.id, AuthSession.expires_at > now(), AuthSession.pending.is_(False))
    return (await session.scalars(select(AuthSession).where(*live).order_by(AuthSession.last_seen_at.desc()))).all()


async def touch_auth_session(session: AsyncSession, used: AuthSession) -> timedelta:
    """Record that a session was just used, and extend it. Returns how long it lasts now."""
    moment = now()
    expires_at = min(moment + AUTH_SESSION_LIFETIME, used.created_at + MAX_AUTH_SESSION_LIFETIME)
    mine = update(AuthSession).where(AuthSession.token_hash == used.token_hash)
    await session.execute(mine.values(last_seen_at=moment, expires_at=expires_at))
    return max(timedelta(0), expires_at - moment)


async def revoke_auth_session(session: AsyncSession, hashed: str) -> None:
    """Sign out the browser whose token has this hash."""
    await session.execute(delete(AuthSession).where(AuthSession.token_hash == hashed))


async def revoke_by_public_id(session: AsyncSession, account: Account, public_id: str) -> None:
    """End one of the account's sessions, by its ID in the list."""
    await session.execute(
        delete(AuthSession).where(AuthSession.account_id == account.id, AuthSession.public_id == public_id)
    )


async def revoke_all_auth_sessions(session: AsyncSession, account: Account, but: str | None = None) -> None:
    """End every session of the account, and revoke its API tokens.

    With ``but``, end every session except the one whose token has this hash, and leave the tokens.
    """
    theirs = delete(AuthSession).where(AuthSession.account_id == account.id)
    if but is not None:
        await session.execute(theirs.where(AuthSession.token_hash != but))
        return
    await session.execute(theirs)
    await session.execute(delete(ApiToken).where(ApiToken.account_id == account.id))
