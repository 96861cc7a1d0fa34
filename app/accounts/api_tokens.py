"""API tokens: each lets a program read what its scopes name, for the account that created it, until it expires.

The program holds 256 random bits behind a prefix by which scanners for leaked secrets know it; SQL holds their hash.
Each request decides what a token may read: it never reads more than its account's pages show at that time.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from sqlalchemy import delete, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account, ApiToken
from app.accounts.tokens import token_hash
from app.db import now
from app.errors import LockstepError
from app.i18n import N_

LIFETIMES_DAYS = (7, 30, 90, 180, 365)
DEFAULT_LIFETIME_DAYS = 90
MAX_TOKENS = 20
"""Per account, with those that have expired and are still listed."""
_PREFIX = "lockstep_"
_TOKEN = re.compile(rf"{_PREFIX}[A-Za-z0-9_-]{{43}}")


class TokenScope(StrEnum):
    """What a token may read."""

    progress = "progress:read"
    work = "work:read"
    groups = "groups:read"


SCOPE_LABELS: Mapping[TokenScope, str] = {
    TokenScope.progress: N_("Your progress: lessons, XP, streak, and achievements"),
    TokenScope.work: N_("Your work: runs, their code and what they printed, and your edits of cells"),
    TokenScope.groups: N_("The groups that you teach: their reports and learners, without code"),
}


class TooManyTokens(LockstepError):
    status = 409
    message = N_("You have {most} tokens, and that is the limit. Revoke one that you no longer need.")


@dataclass(frozen=True, slots=True)
class NewToken:
    """What a form asks for."""

    name: str
    scopes: Collection[TokenScope]
    lifetime: timedelta


def scopes_of(token: ApiToken) -> frozenset[TokenScope]:
    """The scopes of a token. Those that no longer exist are left out. Pure."""
    return frozenset(TokenScope(word) for word in token.scopes.split() if word in set(TokenScope))


async def create_token(session: AsyncSession, account: Account, method: str, wanted: NewToken) -> str:
    """Create a token of a locked account, and return it; it cannot be shown again.

    ``method``: how the browser that asks for it signed in. Raises TooManyTokens.
    """
    count = await session.scalar(select(func.count()).where(ApiToken.account_id == account.id)) or 0
    if count >= MAX_TOKENS:
        raise TooManyTokens(most=MAX_TOKENS)
    token, moment = _PREFIX + secrets.token_urlsafe(32), now()
    session.add(
        ApiToken(
            token_hash=token_hash(token),
            public_id=secrets.token_hex(8),
            account_id=account.id,
            name=wanted.name,
            scopes=" ".join(scope for scope in TokenScope if scope in wanted.scopes),
            method=method,
            created_at=moment,
            expires_at=moment + wanted.lifetime,
        )
    )
    await session.flush()
    return token


async def list_tokens(session: AsyncSession, account: Account) -> Sequence[ApiToken]:
    """The account's tokens, the newest first, with those that have expired lately."""
    mine = select(ApiToken).where(ApiToken.account_id == account.id)
    return (await session.scalars(mine.order_by(ApiToken.created_at.desc(), ApiToken.public_id))).all()


async def revoke_token(session: AsyncSession, account: Account, public_id: str) -> bool:
    """Delete one of the account's tokens, by its ID in the list. Returns whether there was such a token."""
    mine = delete(ApiToken).where(ApiToken.account_id == account.id, ApiToken.public_id == public_id)
    return (await session.execute(mine.returning(ApiToken.public_id))).scalar_one_or_none() is not None


async def find_token(session: AsyncSession, token: str) -> tuple[ApiToken, Account] | None:
    """A token and its account, by the hash of the whole token; None if it is unknown, expired, or of no active account.

    A comparison of hashes reveals nothing about the token by the time it takes.
    """
    if not _TOKEN.fullmatch(token):
        return None
    valid = (ApiToken.token_hash == token_hash(token), ApiToken.expires_at > now(), Account.disabled_at.is_(None))
    found = select(ApiToken, Account).join(Account, Account.id == ApiToken.account_id).where(*valid)
    row = (await session.execute(found)).one_or_none()
    return (row[0], row[1]) if row is not None else None


async def touch_token(session: AsyncSession, token: ApiToken) -> None:
    """Record that a token is used today."""
    today = now().replace(hour=0, minute=0, second=0, microsecond=0)
    earlier = or_(ApiToken.last_used_at.is_(None), ApiToken.last_used_at < today)
    mine = update(ApiToken).where(ApiToken.token_hash == token.token_hash, earlier)
    await session.execute(mine.values(last_used_at=today).execution_options(synchronize_session=False))


def used_today(token: ApiToken) -> bool:
    """Whether its use today is recorded already."""
    return token.last_used_at is not None and now() - token.last_used_at < timedelta(days=1)
