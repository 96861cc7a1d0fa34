"""Links in emails: each has one purpose, expires, and works once. A newer link replaces an older one."""

from __future__ import annotations

import re
import secrets
from datetime import timedelta
from enum import StrEnum

from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account, EmailLink
from app.accounts.tokens import token_hash
from app.db import now
from app.errors import LockstepError, PermissionDenied
from app.i18n import N_

_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")


class LinkPurpose(StrEnum):
    """What a link is for."""

    confirm = "confirm"
    """Confirms the address of a new account."""
    reset = "reset"
    """Sets a new password."""
    change = "change"
    """Confirms a changed address."""


LINK_LIFETIMES = {
    LinkPurpose.confirm: timedelta(days=2),
    LinkPurpose.reset: timedelta(hours=2),
    LinkPurpose.change: timedelta(days=1),
}


class InvalidEmailLink(LockstepError):
    status = 410


class EmailLinkNotFound(InvalidEmailLink):
    status = 404
    message = N_("This link is not valid, or part of it is missing. Copy the whole link from the email.")


class EmailLinkExpired(InvalidEmailLink):
    message = N_("This link has expired.")


class EmailLinkUsed(InvalidEmailLink):
    message = N_("This link was already used, or a newer one has replaced it.")


class EmailLinkForAnotherAccount(PermissionDenied):
    message = N_("This link belongs to another account. Sign in to that account, then open the link again.")


async def create_link(
    session: AsyncSession, account: Account, purpose: LinkPurpose, email: str, next_path: str | None = None
) -> str:
    """Create the token of a link sent to ``email``. Invalidates earlier links of the same purpose.

    ``next_path`` is a ``local_path``, to open once the link is used. It is stored rather than sent, so that the email
    says nothing that somebody typed and the link works on another device.
    """
    moment = now()
    open_ones = (EmailLink.account_id == account.id, EmailLink.purpose == purpose, EmailLink.used_at.is_(None))
    await session.execute(update(EmailLink).where(*open_ones).values(used_at=moment, next_path=None))
    token = secrets.token_urlsafe(32)
    session.add(
        EmailLink(
            token_hash=token_hash(token),
            purpose=purpose,
            account_id=account.id,
            email=email,
            next_path=next_path,
            created_at=moment,
            expires_at=moment + LINK_LIFETIMES[purpose],
            used_at=None,
        )
    )
    await session.flush()
    return token


async def find_link(session: AsyncSession, token: str) -> tuple[EmailLink, Account]:
    """The link and its account, if the link is still valid.

    Raises EmailLinkNotFound, EmailLinkExpired or EmailLinkUsed.
    """
    link = await session.get(EmailLink, token_hash(token)) if _TOKEN.fullmatch(token) else None
    account = await session.get(Account, link.account_id) if link is not None else None
    if link is None or account is None:
        raise EmailLinkNotFound
    if link.used_at is not None or account.disabled_at is not None:
        raise EmailLinkUsed
    if link.expires_at <= now():
        raise EmailLinkExpired
    return link, account


async def use_link(session: AsyncSession, link: EmailLink) -> None:
    """Mark the link as used. Raises EmailLinkUsed if another request was faster."""
    mine = update(EmailLink).where(EmailLink.token_hash == link.token_hash, EmailLink.used_at.is_(None))
    used = await session.execute(mine.values(used_at=now(), next_path=None).returning(EmailLink.token_hash))
    if used.scalar_one_or_none() is None:
        raise EmailLinkUsed


async def revoke_links(session: AsyncSession, account: Account) -> None:
    """Invalidate all links of the account, as after a password change."""
    open_ones = (EmailLink.account_id == account.id, EmailLink.used_at.is_(None))
    await session.execute(update(EmailLink).where(*open_ones).values(used_at=now(), next_path=None))
