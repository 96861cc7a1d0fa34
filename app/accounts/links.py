"""Links in mails: each may be used once, within its time, for one purpose. A newer one takes the place of the older."""

from __future__ import annotations

import re
import secrets
from datetime import timedelta
from enum import StrEnum

from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account, MailLink
from app.accounts.tokens import token_hash
from app.db import now
from app.errors import NotAllowed, Problem
from app.i18n import N_

_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")


class Purpose(StrEnum):
    """What a link is for."""

    confirm = "confirm"
    """The address of a new account."""
    reset = "reset"
    """A new password."""
    change = "change"
    """A new address."""


LASTS = {Purpose.confirm: timedelta(days=2), Purpose.reset: timedelta(hours=2), Purpose.change: timedelta(days=1)}


class LinkGone(Problem):
    status = 410
    code = "link_gone"


class LinkUnknown(LinkGone):
    status = 404
    code = "link_unknown"
    message = N_("This link is not one of ours, or a part of it is missing. Copy it whole from the mail.")


class LinkExpired(LinkGone):
    code = "link_expired"
    message = N_("This link is too old.")


class LinkUsed(LinkGone):
    code = "link_used"
    message = N_("This link has been used, or a newer one has taken its place.")


class LinkOfAnother(NotAllowed):
    code = "link_of_another"
    message = N_("This link belongs to another account. Sign in to that one, then open the link again.")


async def make_link(session: AsyncSession, account: Account, purpose: Purpose, email: str) -> str:
    """A token for a link to ``email``. Earlier ones for the same purpose no longer work."""
    moment = now()
    open_ones = (MailLink.account_id == account.id, MailLink.purpose == purpose, MailLink.used_at.is_(None))
    await session.execute(update(MailLink).where(*open_ones).values(used_at=moment))
    token = secrets.token_urlsafe(32)
    session.add(
        MailLink(
            token_hash=token_hash(token),
            purpose=purpose,
            account_id=account.id,
            email=email,
            created_at=moment,
            expires_at=moment + LASTS[purpose],
            used_at=None,
        )
    )
    await session.flush()
    return token


async def find_link(session: AsyncSession, token: str) -> tuple[MailLink, Account]:
    """The link and whose it is, if it can still be used. Raises LinkUnknown, LinkExpired or LinkUsed."""
    link = await session.get(MailLink, token_hash(token)) if _TOKEN.fullmatch(token) else None
    account = await session.get(Account, link.account_id) if link is not None else None
    if link is None or account is None:
        raise LinkUnknown
    if link.used_at is not None or account.disabled_at is not None:
        raise LinkUsed
    if link.expires_at <= now():
        raise LinkExpired
    return link, account


async def use_link(session: AsyncSession, link: MailLink) -> None:
    """Use it up. Raises LinkUsed if somebody was faster."""
    mine = update(MailLink).where(MailLink.token_hash == link.token_hash, MailLink.used_at.is_(None))
    used = await session.execute(mine.values(used_at=now()).returning(MailLink.token_hash))
    if used.scalar_one_or_none() is None:
        raise LinkUsed


async def end_links(session: AsyncSession, account: Account) -> None:
    """No link of the account works any more: who has it has a new password."""
    open_ones = (MailLink.account_id == account.id, MailLink.used_at.is_(None))
    await session.execute(update(MailLink).where(*open_ones).values(used_at=now()))
