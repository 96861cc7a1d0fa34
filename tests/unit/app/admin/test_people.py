"""What admins do with accounts: search, pages, and the rule that an admin is left."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import select, text, update

from app.accounts.auth_sessions import create_auth_session
from app.accounts.emails import AccountMailer
from app.accounts.models import Account, AuthSession, EmailLink, Role
from app.admin import people
from app.admin.audit import Actor
from app.admin.models import AuditEntry
from app.admin.people import (
    AccountState,
    AlreadyConfirmed,
    LastAdmin,
    PeopleFilter,
    disable_account,
    enable_account,
    list_people,
    resend_confirmation,
    set_role,
)
from app.db import Database, now
from tests.factories.accounts import store_account

ROOT = Actor(None, "root")


async def found(db: Database, narrowed: PeopleFilter) -> set[str]:
    async with db.session() as session:
        return {account.name for account in (await list_people(session, narrowed))[0]}


@pytest.mark.parametrize("search", ["ada.b", "ADA.B", "@ada-b", "ada-byr", "Ada By", "ada by", "ada byron"])
async def test_people_are_found_by_the_start_of_address_handle_and_name(database: Database, search: str) -> None:
    await store_account(database, name="Ada Byron", email="ada.b@example.org")
    await store_account(database, name="Grace Hopper", email="grace@example.org")

    assert await found(database, PeopleFilter(search)) == {"Ada Byron"}


@pytest.mark.parametrize("search", ["%", "_", "byron", "' OR 1=1 --", "\U0010ffff", "김"])
async def test_a_search_has_no_wildcards_and_looks_at_starts_only(database: Database, search: str) -> None:
    await store_account(database, name="Ada Byron", email="ada.b@example.org")

    assert await found(database, PeopleFilter(search)) == set()


async def test_people_are_found_by_role_and_state(database: Database) -> None:
    await store_account(database, Role.admin, name="Grace Hopper")
    bob = await store_account(database, name="Bob Moore")
    eve = await store_account(database, name="Eve Adams")
    async with database.writing() as session:
        await session.execute(update(Account).where(Account.id == bob.id).values(disabled_at=now()))
        await session.execute(update(Account).where(Account.id == eve.id).values(email_confirmed_at=None))

    assert await found(database, PeopleFilter(role=Role.admin)) == {"Grace Hopper"}
    assert await found(database, PeopleFilter(state=AccountState.disabled)) == {"Bob Moore"}
    assert await found(database, PeopleFilter(state=AccountState.unconfirmed)) == {"Eve Adams"}
    assert await found(database, PeopleFilter(state=AccountState.enabled)) == {"Grace Hopper"}


async def test_pages_have_everyone_once_also_those_of_the_same_moment(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(people, "PAGE_SIZE", 2)
    accounts = [await store_account(database, name=f"Ada {number}") for number in range(5)]
    async with database.writing() as session:
        await session.execute(update(Account).where(Account.id != accounts[4].id).values(created_at=now()))

    listed, before = [], None
    while True:
        async with database.session() as session:
            page, before = await list_people(session, PeopleFilter(), before)
        listed += [account.id for account in page]
        if before is None:
            break
    assert sorted(listed) == sorted(account.id for account in accounts)
    assert len(listed) == 5


async def test_a_list_and_a_search_use_indexes(database: Database) -> None:
    async with database.session() as session:
        if session.get_bind().dialect.name == "postgresql":
            await session.execute(text("SET LOCAL enable_seqscan = off"))
            plans = "\n".join(
                [
                    *await session.scalars(text("EXPLAIN SELECT * FROM accounts ORDER BY created_at DESC, id DESC")),
                    *await session.scalars(
                        text("EXPLAIN SELECT id FROM accounts WHERE handle ~>=~ 'ada' AND handle ~<=~ 'adb'")
                    ),
                ]
            )
        else:
            listed = text("EXPLAIN QUERY PLAN SELECT * FROM accounts ORDER BY created_at DESC, id DESC")
            searched = text("EXPLAIN QUERY PLAN SELECT id FROM accounts WHERE handle >= 'ada' AND handle <= 'adb'")
            plans = "\n".join([str(row) for query in (listed, searched) for row in await session.execute(query)])
    assert "ix_accounts_created_at" in plans
    assert "handle" in plans.split("ix_accounts_created_at")[1]


async def test_the_last_admin_keeps_the_role_and_cannot_be_disabled(database: Database) -> None:
    admin = await store_account(database, Role.admin)
    other = await store_account(database, Role.admin)
    async with database.writing() as session:
        await disable_account(session, ROOT, other)

    with pytest.raises(LastAdmin):
        async with database.writing() as session:
            await set_role(session, Actor.of(admin), admin, Role.instructor)
    with pytest.raises(LastAdmin):
        async with database.writing() as session:
            await disable_account(session, Actor.of(admin), admin)

    async with database.session() as session:
        mine = await session.get_one(Account, admin.id)
        assert (mine.role, mine.disabled_at) == (Role.admin, None)
        assert list(await session.scalars(select(AuditEntry.account_id))) == [other.id]


async def test_an_admin_who_never_confirmed_does_not_count_as_one_that_is_left(database: Database) -> None:
    admin, ghost = await store_account(database, Role.admin), await store_account(database, Role.admin)
    async with database.writing() as session:
        await session.execute(update(Account).where(Account.id == ghost.id).values(email_confirmed_at=None))

    with pytest.raises(LastAdmin):
        async with database.writing() as session:
            await set_role(session, Actor.of(admin), admin, Role.learner)


async def test_changes_that_change_nothing_are_not_in_the_audit_log(database: Database) -> None:
    ada = await store_account(database)
    async with database.writing() as session:
        await set_role(session, ROOT, ada, Role.learner)
        await enable_account(session, ROOT, ada)

    async with database.session() as session:
        assert list(await session.scalars(select(AuditEntry.id))) == []


async def test_disabling_signs_out_and_is_written_down_with_who_did_it(database: Database) -> None:
    admin, ada = await store_account(database, Role.admin), await store_account(database)
    async with database.writing() as session:
        await create_auth_session(session, ada, method="password")
        await disable_account(session, Actor.of(admin), ada)

    async with database.session() as session:
        assert list(await session.scalars(select(AuthSession.public_id))) == []
        (entry,) = await session.scalars(select(AuditEntry))
        assert (entry.action, entry.actor_id, entry.account_id) == ("account_disabled", admin.id, ada.id)
        assert now() - entry.created_at < timedelta(minutes=1)


async def test_a_confirmation_goes_only_to_who_has_not_confirmed(database: Database) -> None:
    ada, mailer = await store_account(database), AccountMailer(lambda name, **_: f"/{name}", "http://test")
    with pytest.raises(AlreadyConfirmed):
        async with database.writing() as session:
            await resend_confirmation(session, ROOT, ada, mailer)

    async with database.writing() as session:
        await session.execute(update(Account).where(Account.id == ada.id).values(email_confirmed_at=None))
    async with database.writing() as session:
        await resend_confirmation(session, ROOT, ada, mailer)
    async with database.session() as session:
        assert list(await session.scalars(select(EmailLink.email))) == [ada.email]
