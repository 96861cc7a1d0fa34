"""The audit log: stored with its action, filtered, kept for a time, and exported without formulas."""

from __future__ import annotations

import csv
from datetime import timedelta

import pytest
from sqlalchemy import select, update

from app.accounts.models import Account, Role
from app.admin import audit
from app.admin.audit import Actor, AuditAction, AuditFilter, AuditRetention, export_csv, list_entries, record_action
from app.admin.models import AuditEntry
from app.db import Database, now
from tests.factories.accounts import store_account


async def record(db: Database, actor: Actor, action: AuditAction, account: Account | None = None) -> None:
    async with db.writing() as session:
        await record_action(session, actor, action, account, "a detail")


async def test_entries_are_listed_newest_first_with_handles_and_in_pages(database: Database) -> None:
    admin, ada = await store_account(database, Role.admin), await store_account(database)
    await record(database, Actor.of(admin), AuditAction.account_disabled, ada)
    await record(database, Actor.of(admin), AuditAction.account_enabled, ada)
    await record(database, Actor(None, "root"), AuditAction.account_invited)

    async with database.session() as session:
        first, before = await list_entries(session, AuditFilter(), most=2)
        rest, over = await list_entries(session, AuditFilter(), before, most=2)

    assert [(row.entry.action, row.actor, row.account) for row in (*first, *rest)] == [
        ("account_invited", None, None),
        ("account_enabled", admin.handle, ada.handle),
        ("account_disabled", admin.handle, ada.handle),
    ]
    assert over is None


async def test_a_filter_finds_what_a_person_did_and_what_was_done_to_them(database: Database) -> None:
    admin, ada, bob = [await store_account(database, role) for role in (Role.admin, Role.learner, Role.learner)]
    await record(database, Actor.of(admin), AuditAction.account_disabled, ada)
    await record(database, Actor.of(admin), AuditAction.account_enabled, bob)

    async def found(narrowed: AuditFilter) -> list[str]:
        async with database.session() as session:
            return [row.entry.action for row in (await list_entries(session, narrowed))[0]]

    assert await found(AuditFilter(person=ada.id)) == ["account_disabled"]
    assert await found(AuditFilter(person=admin.id)) == ["account_enabled", "account_disabled"]
    assert await found(AuditFilter(AuditAction.account_enabled, ada.id)) == []


async def test_an_action_that_fails_leaves_no_entry(database: Database) -> None:
    async with database.session() as session:  # never committed
        await record_action(session, Actor(None, "root"), AuditAction.account_created)

    async with database.session() as session:
        assert await session.scalar(select(AuditEntry.id)) is None


async def test_entries_are_deleted_when_they_have_been_kept_long_enough(database: Database) -> None:
    for _ in range(2):
        await record(database, Actor(None, "root"), AuditAction.account_created)
    async with database.writing() as session:
        oldest = await session.scalar(select(AuditEntry.id).order_by(AuditEntry.id).limit(1))
        await session.execute(
            update(AuditEntry).where(AuditEntry.id == oldest).values(created_at=now() - timedelta(days=31))
        )

    for kept, left in ((None, 2), (timedelta(days=30), 1)):
        async with database.writing() as session:
            assert await AuditRetention(kept)(session) is False
        async with database.session() as session:
            assert len(list(await session.scalars(select(AuditEntry.id)))) == left


async def test_the_csv_has_every_entry_of_the_filter(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "_EXPORT_BATCH", 2)
    ada = await store_account(database)
    for _ in range(5):
        await record(database, Actor(None, "root"), AuditAction.account_disabled, ada)
    await record(database, Actor(None, "root"), AuditAction.account_created)

    text = "".join([piece async for piece in export_csv(database, AuditFilter(person=ada.id))])

    header, *rows = csv.reader(text.splitlines())
    assert header == ["time", "action", "actor", "actor_id", "operator", "account", "account_id", "detail"]
    assert [row[1:] for row in rows] == [["account_disabled", "", "", "root", ada.handle, ada.id, "a detail"]] * 5


def test_a_command_is_the_operators_also_behind_sudo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_USER", "grace")
    assert Actor.of_command() == Actor(None, "grace")
