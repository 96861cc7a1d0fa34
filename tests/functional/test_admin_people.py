"""The admin pages of accounts and of the audit log, over HTTP, on both databases."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import select, update
from typer.testing import CliRunner

from app.accounts.auth_sessions import REAUTHENTICATE_AFTER
from app.accounts.models import Account, AuthSession, Role
from app.accounts.passwords import AsyncPasswordHasher
from app.admin.models import AuditEntry
from app.cli import user
from app.db import Database, now
from app.settings import Settings
from tests.factories.accounts import signed_in_browser, store_account
from tests.factories.databases import mainly_on

PASSWORD = "correct horse battery"

pytestmark = mainly_on("sqlite")


@pytest.fixture
def settings(settings: Settings, database: Database) -> Settings:
    url = database.engine.url.render_as_string(hide_password=False)
    return settings.model_copy(update={"database_url": url})


@pytest.fixture
async def admin(app: FastAPI) -> Account:
    return await store_account(app.state.db, Role.admin, name="Grace Hopper")


@pytest.fixture
async def browser(app: FastAPI, admin: Account) -> AsyncIterator[httpx.AsyncClient]:
    async with await signed_in_browser(app, admin) as browser:
        yield browser


async def reload(app: FastAPI, account: Account) -> Account:
    async with app.state.db.session() as session:
        found: Account = await session.get_one(Account, account.id)
        return found


async def audited(app: FastAPI) -> list[tuple[str, str | None, str | None]]:
    async with app.state.db.session() as session:
        entries = await session.scalars(select(AuditEntry).order_by(AuditEntry.id))
        return [(entry.action, entry.actor_id, entry.account_id) for entry in entries]


async def test_an_admin_finds_someone_changes_them_and_reads_it_in_the_audit_log(
    app: FastAPI, admin: Account, browser: httpx.AsyncClient
) -> None:
    ada = await store_account(app.state.db, name="Ada <b>Byron</b>", email="ada@example.org")
    found = await browser.get("/en/admin/people", params={"search": "ada"})
    assert f"/en/admin/people/{ada.id}" in found.text
    assert "Ada &lt;b&gt;Byron" in found.text
    assert found.headers["cache-control"] == "no-store"

    page = f"/en/admin/people/{ada.id}"
    for form in ({"verb": "role", "role": "instructor"}, {"verb": "disable"}, {"verb": "enable"}):
        answer = await browser.post(page, data=form)
        assert (answer.status_code, answer.headers["location"]) == (303, page)
    assert "The account is enabled." in (await browser.get(page)).text

    assert ((await reload(app, ada)).role, (await reload(app, ada)).disabled_at) == (Role.instructor, None)
    actions = ("role_changed", "account_disabled", "account_enabled")
    assert await audited(app) == [(action, admin.id, ada.id) for action in actions]
    log = await browser.get("/en/admin/audit", params={"person": ada.handle})
    assert log.text.count(f">@{ada.handle}</a>") == 3
    assert "learner → instructor" in log.text
    assert "No account has this handle." in (await browser.get("/en/admin/audit?person=nobody-here")).text
    text = (await browser.get("/en/admin/audit/log.csv", params={"action": "role_changed"})).text
    assert [line.split(",")[1] for line in text.splitlines()] == ['"action"', '"role_changed"']


async def test_ending_sign_ins_signs_every_browser_of_the_account_out(app: FastAPI, browser: httpx.AsyncClient) -> None:
    ada = await store_account(app.state.db)
    async with await signed_in_browser(app, ada) as theirs:
        assert (await theirs.get("/en/settings")).status_code == 200
        await browser.post(f"/en/admin/people/{ada.id}", data={"verb": "end_sessions"})
        assert (await theirs.get("/en/settings")).status_code == 401


async def test_a_change_needs_the_password_of_the_admin(
    app: FastAPI, admin: Account, browser: httpx.AsyncClient
) -> None:
    ada = await store_account(app.state.db)
    async with app.state.db.writing() as session:
        hashed = await AsyncPasswordHasher().hash(PASSWORD)
        await session.execute(update(Account).where(Account.id == admin.id).values(password_hash=hashed))

    page = f"/en/admin/people/{ada.id}"
    for wrong in ({}, {"password": "wrong"}):
        refused = await browser.post(page, data={"verb": "role", "role": "admin", **wrong})
        assert refused.status_code == 422
        assert 'aria-invalid="true"' in refused.text
    assert (await reload(app, ada)).role == Role.learner
    assert await audited(app) == []

    await browser.post(page, data={"verb": "role", "role": "admin", "password": PASSWORD})
    assert (await reload(app, ada)).role == Role.admin


async def test_an_admin_without_a_password_needs_a_recent_sign_in(
    app: FastAPI, admin: Account, browser: httpx.AsyncClient
) -> None:
    ada = await store_account(app.state.db)
    async with app.state.db.writing() as session:
        await session.execute(update(AuthSession).values(created_at=now() - 2 * REAUTHENTICATE_AFTER))

    refused = await browser.post(f"/en/admin/people/{ada.id}", data={"verb": "disable"})
    assert refused.status_code == 422
    assert "You signed in a while ago." in refused.text
    assert (await reload(app, ada)).disabled_at is None


@pytest.mark.parametrize("form", [{"verb": "role", "role": "learner"}, {"verb": "disable"}])
async def test_the_last_admin_is_told_to_give_the_role_to_somebody_else(
    app: FastAPI, admin: Account, browser: httpx.AsyncClient, form: dict[str, str]
) -> None:
    refused = await browser.post(f"/en/admin/people/{admin.id}", data=form)
    assert refused.status_code == 409
    assert "This is the last admin." in refused.text
    assert ((await reload(app, admin)).role, await audited(app)) == (Role.admin, [])


@pytest.mark.parametrize("verb", ["role", "disable"])
async def test_two_admins_who_demote_each_other_at_once_leave_one(
    app: FastAPI, admin: Account, browser: httpx.AsyncClient, verb: str
) -> None:
    rival = await store_account(app.state.db, Role.admin)
    async with await signed_in_browser(app, rival) as theirs:
        answers = await asyncio.gather(
            browser.post(f"/en/admin/people/{rival.id}", data={"verb": verb}),
            theirs.post(f"/en/admin/people/{admin.id}", data={"verb": verb}),
        )
    done, refused = sorted(answer.status_code for answer in answers)
    assert done == 303
    assert refused in (401, 403)
    assert len(await audited(app)) == 1
    async with app.state.db.session() as session:
        able = select(Account.id).where(Account.role == Role.admin, Account.disabled_at.is_(None))
        assert len(list(await session.scalars(able))) == 1


async def test_changes_from_other_sites_are_refused(app: FastAPI, browser: httpx.AsyncClient) -> None:
    ada = await store_account(app.state.db)
    for headers in ({"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}):
        page = f"/en/admin/people/{ada.id}"
        assert (await browser.post(page, data={"verb": "disable"}, headers=headers)).status_code == 403
    assert (await reload(app, ada)).disabled_at is None


@pytest.mark.parametrize("role", [Role.learner, Role.instructor])
async def test_nobody_else_sees_or_changes_accounts(app: FastAPI, admin: Account, role: Role) -> None:
    async with await signed_in_browser(app, role) as theirs:
        for path in ("", "/people", f"/people/{admin.id}", "/storage", "/audit", "/audit/log.csv"):
            answer = await theirs.get(f"/en/admin{path}")
            assert (answer.status_code, admin.email in answer.text) == (403, False)
        for verb in ("role", "disable", "enable", "end_sessions"):
            assert (await theirs.post(f"/en/admin/people/{admin.id}", data={"verb": verb})).status_code == 403
        assert "/en/admin" not in (await theirs.get("/en/pieces", headers={"hx-request": "true"})).text
    assert await audited(app) == []


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("people/nobody", 404),
        ("people/%00", 404),
        ("people?search=%00", 422),
        ("people?before=~", 422),
        ("people?before=0&role=king&state=x", 200),
        ("audit?action=nothing", 200),
        ("audit/log.csv?person=%00", 422),
    ],
)
async def test_input_that_no_page_sends_is_refused_or_ignored(
    browser: httpx.AsyncClient, path: str, status: int
) -> None:
    assert (await browser.get(f"/en/admin/{path}")).status_code == status


async def test_a_new_link_goes_to_who_has_not_confirmed_and_to_nobody_else(
    app: FastAPI, browser: httpx.AsyncClient
) -> None:
    ada = await store_account(app.state.db)
    page = f"/en/admin/people/{ada.id}"
    assert (await browser.post(f"{page}/confirmation")).status_code == 409
    async with app.state.db.writing() as session:
        await session.execute(update(Account).where(Account.id == ada.id).values(email_confirmed_at=None))
    assert (await browser.post(f"{page}/confirmation")).status_code == 303
    assert [action for action, _, _ in await audited(app)] == ["confirmation_sent"]


async def test_commands_are_in_the_audit_log_and_may_disable_the_last_admin(
    app: FastAPI, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCKSTEP_DATA_DIR", str(settings.data_dir))
    monkeypatch.setenv("LOCKSTEP_DATABASE_URL", settings.database)
    monkeypatch.setenv("SUDO_USER", "grace")
    ada = await store_account(app.state.db)

    for arguments in (["role", ada.email, "admin"], ["disable", ada.email]):
        result = await asyncio.to_thread(CliRunner().invoke, user.app, arguments)
        assert result.exit_code == 0, result.output

    async with app.state.db.session() as session:
        entries = list(await session.scalars(select(AuditEntry).order_by(AuditEntry.id)))
    assert [(one.action, one.actor_id, one.operator, one.detail) for one in entries] == [
        ("role_changed", None, "grace", "learner → admin"),
        ("account_disabled", None, "grace", ""),
    ]
