"""What admins do with accounts: find them, set roles, disable and enable them, end their auth sessions.

The pages and ``lockstep user`` use the same functions, so the same audit log is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import ColumnElement, func, or_, select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import InstrumentedAttribute

from app.accounts.auth_sessions import revoke_all_auth_sessions
from app.accounts.email_links import LinkPurpose
from app.accounts.emails import AccountMailer
from app.accounts.models import Account, Role
from app.accounts.service import lock_account
from app.accounts.validation import email_key
from app.admin.audit import Actor, AuditAction, record_action
from app.db import advisory_lock, now
from app.errors import LockstepError, NotFound
from app.i18n import N_
from app.security_log import SecurityEvent, record

PAGE_SIZE = 50
"""Accounts per page."""
MAX_SEARCH_LENGTH = 100
_LAST_CHARACTER = "\U0010ffff"


class AccountState(StrEnum):
    enabled = "enabled"
    unconfirmed = "unconfirmed"
    disabled = "disabled"


class AccountNotFound(NotFound):
    message = N_("There is no such account.")


class LastAdmin(LockstepError):
    status = 409
    message = N_("This is the last admin. Give the role to somebody else first.")


class AlreadyConfirmed(LockstepError):
    status = 409
    message = N_("This account does not wait for its address to be confirmed.")


@dataclass(frozen=True, slots=True)
class PeopleFilter:
    """Which accounts to list; the defaults match everything. ``search`` is how an address, handle or name begins."""

    search: str = ""
    role: Role | None = None
    state: AccountState | None = None


def state_of(account: Account) -> AccountState:
    """Pure."""
    if account.disabled_at is not None:
        return AccountState.disabled
    return AccountState.enabled if account.email_confirmed_at is not None else AccountState.unconfirmed


async def list_people(
    session: AsyncSession, narrowed: PeopleFilter, before: str | None = None
) -> tuple[Sequence[Account], str | None]:
    """A page of accounts, the newest first, and the cursor of the next page: the ID of its last account."""
    found = (
        select(Account).where(*_conditions(session, narrowed)).order_by(Account.created_at.desc(), Account.id.desc())
    )
    if before is not None and (last := await session.get(Account, before)) is not None:
        found = found.where(tuple_(Account.created_at, Account.id) < tuple_(last.created_at, last.id))
    page = list(await session.scalars(found.limit(PAGE_SIZE + 1)))
    return page[:PAGE_SIZE], page[PAGE_SIZE - 1].id if len(page) > PAGE_SIZE else None


async def count_staff(session: AsyncSession) -> dict[Role, int]:
    """How many instructors and admins can sign in. There are few, and an index has their roles."""
    able = (Account.disabled_at.is_(None), Account.email_confirmed_at.is_not(None))
    staff = (Role.instructor, Role.admin)
    found = select(Account.role, func.count()).where(Account.role.in_(staff), *able).group_by(Account.role)
    counts = {Role(role): number for role, number in await session.execute(found)}
    return {role: counts.get(role, 0) for role in staff}


async def get_person(session: AsyncSession, account_id: str) -> Account:
    """Raises AccountNotFound."""
    account = await session.get(Account, account_id) if "\0" not in account_id else None
    if account is None:
        raise AccountNotFound
    return account


async def lock_admins(session: AsyncSession) -> None:
    """Let one transaction at a time change accounts for an admin. Call it before any account is locked.

    Otherwise, two admins who demote each other could wait for each other, or leave none.
    """
    await advisory_lock(session, "admins")


async def set_role(session: AsyncSession, actor: Actor, account: Account, role: Role) -> None:
    """Raises LastAdmin on behalf of an admin."""
    account = await lock_account(session, account)
    before, was_admin = account.role, _is_able_admin(account)
    account.role = role
    await _require_an_admin(session, actor, account, was_admin=was_admin)
    if before != role:
        record(SecurityEvent.role_changed, account=account.id, reason=role)
        await record_action(session, actor, AuditAction.role_changed, account, f"{before} → {role}")


async def disable_account(session: AsyncSession, actor: Actor, account: Account) -> None:
    """Sign an account out of every browser and refuse its sign-ins. Raises LastAdmin on behalf of an admin."""
    account = await lock_account(session, account)
    before, was_admin = account.disabled_at, _is_able_admin(account)
    account.disabled_at = before or now()
    await _require_an_admin(session, actor, account, was_admin=was_admin)
    await revoke_all_auth_sessions(session, account)
    if before is None:
        record(SecurityEvent.account_disabled, account=account.id)
        await record_action(session, actor, AuditAction.account_disabled, account)


async def enable_account(session: AsyncSession, actor: Actor, account: Account) -> None:
    account = await lock_account(session, account)
    before = account.disabled_at
    account.disabled_at = None
    if before is not None:
        record(SecurityEvent.account_enabled, account=account.id)
        await record_action(session, actor, AuditAction.account_enabled, account)


async def end_auth_sessions(session: AsyncSession, actor: Actor, account: Account) -> None:
    """Sign an account out of every browser."""
    await revoke_all_auth_sessions(session, await lock_account(session, account))
    record(SecurityEvent.auth_sessions_ended, account=account.id, reason="by an admin")
    await record_action(session, actor, AuditAction.auth_sessions_ended, account)


async def resend_confirmation(session: AsyncSession, actor: Actor, account: Account, mailer: AccountMailer) -> None:
    """Send a new link that confirms the address of an account. Raises AlreadyConfirmed."""
    account = await lock_account(session, account)
    if state_of(account) is not AccountState.unconfirmed:
        raise AlreadyConfirmed
    await mailer.send_link(session, account, LinkPurpose.confirm, account.email)
    await record_action(session, actor, AuditAction.confirmation_sent, account)


def _is_able_admin(account: Account) -> bool:
    return account.role == Role.admin and state_of(account) is AccountState.enabled


async def _require_an_admin(session: AsyncSession, actor: Actor, account: Account, *, was_admin: bool) -> None:
    """Check that a change of an admin leaves one who can sign in. The transaction must not be committed otherwise.

    A command may take away the last one, whose account may be in the wrong hands, and can make another.
    """
    if actor.account_id is None or not was_admin or _is_able_admin(account):
        return
    await session.flush()
    able = (Account.role == Role.admin, Account.disabled_at.is_(None), Account.email_confirmed_at.is_not(None))
    if await session.scalar(select(Account.id).where(*able).limit(1)) is None:
        raise LastAdmin


def _conditions(session: AsyncSession, narrowed: PeopleFilter) -> Sequence[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if text := narrowed.search.strip().removeprefix("@"):
        names = {text, text[:1].upper() + text[1:], text.title()}
        begins = [(Account.email_key, email_key(text)), (Account.handle, text.lower())]
        begins += [(Account.name, name) for name in sorted(names)]
        conditions.append(or_(*(_starts_with(session, column, start) for column, start in begins)))
    if narrowed.role is not None:
        conditions.append(Account.role == narrowed.role)
    match narrowed.state:
        case AccountState.disabled:
            conditions.append(Account.disabled_at.is_not(None))
        case AccountState.unconfirmed:
            conditions += [Account.email_confirmed_at.is_(None), Account.disabled_at.is_(None)]
        case AccountState.enabled:
            conditions += [Account.email_confirmed_at.is_not(None), Account.disabled_at.is_(None)]
    return conditions


def _starts_with(session: AsyncSession, column: InstrumentedAttribute[str], start: str) -> ColumnElement[bool]:
    """In the order of code points, so that an index finds it: PostgreSQL's has the operators of a pattern."""
    last = start + _LAST_CHARACTER
    if session.get_bind().dialect.name == "postgresql":
        return column.bool_op("~>=~")(start) & column.bool_op("~<=~")(last)
    return (column >= start) & (column <= last)
