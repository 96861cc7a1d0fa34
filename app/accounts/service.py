"""Accounts in SQL: creating, finding, locking and deleting them."""

from __future__ import annotations

import secrets

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncSession

from app import i18n
from app.accounts.handles import generate_handle
from app.accounts.models import Account, EmailFrequency, Role
from app.accounts.validation import email_key
from app.db import advisory_lock, now
from app.errors import NotFound, PermissionDenied
from app.i18n import N_
from app.security_log import SecurityEvent, record


class LearnerNotFound(NotFound):
    """Raised alike for a handle that does not exist and for a private profile."""

    message = N_("Nobody here has this handle.")


class AccountDeleted(PermissionDenied):
    """The account was deleted in the meantime."""

    message = N_("This account no longer exists.")


async def find_by_email(session: AsyncSession, email: str, *, held: bool = False) -> Account | None:
    """The account of an address, however spelled. ``held`` locks it until the transaction ends."""
    found = select(Account).where(Account.email_key == email_key(email))
    return await session.scalar(found.with_for_update().execution_options(populate_existing=True) if held else found)


async def find_by_handle(session: AsyncSession, handle: str) -> Account | None:
    """The account with this handle, ignoring case; None if it is disabled."""
    if "\0" in handle or not handle.isascii():
        return None  # PostgreSQL rejects NUL even in a query
    known = select(Account).where(Account.handle == handle.lower(), Account.disabled_at.is_(None))
    return await session.scalar(known)


async def find_claimed_account(session: AsyncSession, email: str) -> Account | None:
    """The account of an address, locked, if it was confirmed or disabled.

    An unconfirmed account does not count: anyone may have typed the address.
    """
    found = await find_by_email(session, email, held=True)
    return found if found is not None and not _is_unclaimed(found) else None


async def create_account(
    session: AsyncSession,
    *,
    email: str,
    name: str | None,
    password_hash: str | None = None,
    role: Role = Role.learner,
    language: str = "en",
    time_zone: str = "UTC",
    confirmed: bool = False,
) -> Account:
    """Store a new account with its own learner ID. Replaces an unconfirmed account of the address, keeping its ID.

    Without a name, the account is called ``Learner 4821`` in its language until its owner chooses a name.
    """
    await advisory_lock(session, "handles")
    account = await find_by_email(session, email, held=True)
    if account is None:
        account = Account(id=secrets.token_hex(16), learner_id=secrets.token_hex(32), handle="")
    elif not _is_unclaimed(account):
        raise ValueError("the address already has an account")
    account.email, account.email_key = email, email_key(email)
    account.email_confirmed_at = now() if confirmed else None
    account.password_hash = password_hash
    account.handle = await generate_handle(session, name, account)
    account.name = name or _default_name(account.handle, language)
    account.role, account.language, account.time_zone = role, language, time_zone
    account.public_profile, account.email_frequency = False, EmailFrequency.immediately
    account.created_at, account.disabled_at = now(), None
    session.add(account)
    await session.flush()
    record(SecurityEvent.account_created, account=account.id, reason=role)
    return account


def _is_unclaimed(account: Account) -> bool:
    return account.email_confirmed_at is None and account.disabled_at is None


def _default_name(handle: str, language: str) -> str:
    with i18n.use_language(language):
        return i18n.gettext("Learner {number}").format(number=handle.rpartition("-")[2])


async def delete_unclaimed_account(session: AsyncSession, email: str) -> None:
    """Delete the account of that address if it was never confirmed."""
    await session.execute(
        delete(Account).filter_by(email_key=email_key(email), email_confirmed_at=None, disabled_at=None)
    )


async def lock_account(session: AsyncSession, account: Account) -> Account:
    """Reload the account and lock it for this transaction. Raises AccountDeleted."""
    found = await session.get(Account, account.id, populate_existing=True, with_for_update=True)
    if found is None:
        raise AccountDeleted
    return found
