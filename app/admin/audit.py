"""The audit log: what admins did, to whom and when, on the pages and by commands.

An entry is stored in the transaction of the action that it reports: there is neither one without the other.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from sqlalchemy import Select, or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account
from app.admin.models import AuditEntry
from app.db import Database, delete_batch, now, sortable_id
from app.web.csv_table import to_csv

PAGE_SIZE = 50
"""Entries per page."""
_EXPORT_BATCH = 500
_CLEANUP_BATCH = 1000
_MAX_DETAIL, _MAX_OPERATOR = 300, 64
_CSV_HEADER = ("time", "action", "actor", "actor_id", "operator", "account", "account_id", "detail")


class AuditAction(StrEnum):
    account_created = "account_created"
    account_invited = "account_invited"
    role_changed = "role_changed"
    account_disabled = "account_disabled"
    account_enabled = "account_enabled"
    auth_sessions_ended = "auth_sessions_ended"
    second_factor_reset = "second_factor_reset"  # an action, not a secret
    confirmation_sent = "confirmation_sent"
    email_retried = "email_retried"
    emails_retried = "emails_retried"
    email_discarded = "email_discarded"
    test_email_sent = "test_email_sent"
    session_stopped = "session_stopped"
    maintenance_on = "maintenance_on"
    maintenance_off = "maintenance_off"
    drain_on = "drain_on"
    drain_off = "drain_off"


@dataclass(frozen=True, slots=True)
class Actor:
    """Who does something: an admin with an account, or whoever runs a command on the machine."""

    account_id: str | None = None
    operator: str = ""

    @classmethod
    def of(cls, account: Account) -> Actor:
        return cls(account.id)

    @classmethod
    def of_command(cls) -> Actor:
        """The user of the operating system, also behind sudo."""
        try:
            name = os.environ.get("SUDO_USER") or getpass.getuser()
        except (OSError, KeyError):  # a container may have no name for its user
            name = f"user {os.getuid()}"
        return cls(None, name[:_MAX_OPERATOR])


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which entries to show; the defaults match everything. ``person`` is an account that acted or was changed."""

    action: AuditAction | None = None
    person: str | None = None


@dataclass(frozen=True, slots=True)
class AuditRow:
    """An entry with the handles of the accounts that still exist."""

    entry: AuditEntry
    actor: str | None
    account: str | None


async def record_action(
    session: AsyncSession,
    actor: Actor,
    action: AuditAction,
    account: Account | None = None,
    detail: str = "",
    *,
    account_id: str | None = None,
) -> None:
    """Store an entry in this transaction. The account that was changed is given itself, or by its ID."""
    session.add(
        AuditEntry(
            id=sortable_id(),
            created_at=now(),
            action=action,
            actor_id=actor.account_id,
            operator=actor.operator,
            account_id=account.id if account is not None else account_id,
            detail=detail[:_MAX_DETAIL],
        )
    )
    await session.flush()


async def record_first_admin(session: AsyncSession, account: Account) -> None:
    """Store that a setup link has made this account an admin: whoever opened it did so."""
    await record_action(session, Actor.of(account), AuditAction.account_created, account, account.role)


async def list_entries(
    session: AsyncSession, narrowed: AuditFilter, before: str | None = None, most: int = PAGE_SIZE
) -> tuple[Sequence[AuditRow], str | None]:
    """A page of entries, newest first, and the cursor of the next page."""
    found = list(await session.scalars(_matching(narrowed, before).limit(most + 1)))
    page = found[:most]
    return await _with_handles(session, page), page[-1].id if len(found) > most else None


async def export_csv(db: Database, narrowed: AuditFilter) -> AsyncIterator[str]:
    """Yield all matching entries as CSV, newest first. Holds no connection while the client reads."""
    yield to_csv([_CSV_HEADER])
    before: str | None = None
    while True:
        async with db.session() as session:
            rows, before = await list_entries(session, narrowed, before, _EXPORT_BATCH)
        yield to_csv(_cells(row) for row in rows)
        if before is None:
            return


def _cells(row: AuditRow) -> Sequence[str]:
    entry = row.entry
    who = (row.actor or "", entry.actor_id or "", entry.operator)
    return (entry.created_at.isoformat(), entry.action, *who, row.account or "", entry.account_id or "", entry.detail)


def _matching(narrowed: AuditFilter, before: str | None) -> Select[AuditEntry]:
    found: Select[AuditEntry] = select(AuditEntry).order_by(AuditEntry.id.desc())
    if narrowed.action is not None:
        found = found.where(AuditEntry.action == narrowed.action)
    if narrowed.person is not None:
        found = found.where(or_(AuditEntry.actor_id == narrowed.person, AuditEntry.account_id == narrowed.person))
    return found.where(AuditEntry.id < before) if before else found


async def _with_handles(session: AsyncSession, entries: Sequence[AuditEntry]) -> Sequence[AuditRow]:
    named = {known for entry in entries for known in (entry.actor_id, entry.account_id) if known}
    handles: dict[str | None, str] = {}
    if named:
        found = await session.execute(select(Account.id, Account.handle).where(Account.id.in_(named)))
        handles = {row.id: row.handle for row in found}
    return [AuditRow(entry, handles.get(entry.actor_id), handles.get(entry.account_id)) for entry in entries]


@dataclass(frozen=True, slots=True)
class AuditRetention:
    """Deletes entries that are older than the operator keeps them."""

    kept: timedelta | None

    async def __call__(self, session: AsyncSession) -> bool:
        if self.kept is None:
            return False
        old = AuditEntry.created_at < now() - self.kept
        return await delete_batch(session, AuditEntry, _CLEANUP_BATCH, old) == _CLEANUP_BATCH
