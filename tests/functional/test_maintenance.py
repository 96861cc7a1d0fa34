"""Maintenance mode: a banner for everyone, changes and sign-ins for admins only, in every web process."""

from __future__ import annotations

import asyncio

import httpx
import pyotp
import pytest
from fastapi import FastAPI
from sqlalchemy import select
from typer.testing import CliRunner

from app import site_switches
from app.accounts.models import Account, Role
from app.accounts.passwords import AsyncPasswordHasher
from app.accounts.service import create_account
from app.admin.models import AuditEntry
from app.cli import maintenance
from app.db import Database
from app.main import create_app
from app.settings import Settings
from app.site_switches import Switch, turn
from app.web.maintenance import SWITCHES
from tests.factories.accounts import signed_in_browser, store_account
from tests.factories.authenticator_app import set_up_authenticator
from tests.factories.browser_client import browser_client
from tests.factories.course import LESSON
from tests.factories.databases import mainly_on

PASSWORD = "correct horse battery"
BANNER = "This site is under maintenance."
RUN = {"lesson": LESSON, "cell": "hello", "code": "print(1)"}

pytestmark = mainly_on("sqlite")


@pytest.fixture
def settings(settings: Settings, database: Database) -> Settings:
    url = database.engine.url.render_as_string(hide_password=False)
    return settings.model_copy(update={"database_url": url})


@pytest.fixture
async def closed(app: FastAPI) -> None:
    """In maintenance mode."""
    await _turn(app, on=True)


async def _turn(app: FastAPI, *, on: bool) -> None:
    async with app.state.db.writing() as session:
        await turn(session, Switch.maintenance, on=on)
    await SWITCHES.get(app).refresh(app.state.db)


async def _with_password(app: FastAPI, role: Role) -> Account:
    hashed = await AsyncPasswordHasher().hash(PASSWORD)
    async with app.state.db.writing() as session:
        return await create_account(
            session, email=f"{role}@example.org", name="Ada Byron", role=role, password_hash=hashed, confirmed=True
        )


async def test_pages_say_so_in_every_language_and_stop_when_it_is_over(app: FastAPI, client: httpx.AsyncClient) -> None:
    paths = {"en": BANNER, "ko": "점검", "zh": "维护"}
    for lang in paths:
        assert "site-banner" not in (await client.get(f"/{lang}/courses/{LESSON}")).text  # and is cached
    await _turn(app, on=True)
    for lang, words in paths.items():
        for page in (f"/{lang}/courses/{LESSON}", f"/{lang}/sign-in", f"/{lang}/nothing-here"):
            banner = (await client.get(page, headers={"accept": "text/html"})).text.partition("site-banner")[2]
            assert words in banner.partition("</aside>")[0], page
    await _turn(app, on=False)
    assert "site-banner" not in (await client.get(f"/en/courses/{LESSON}")).text


@pytest.mark.usefixtures("closed")
@pytest.mark.parametrize("role", [None, Role.learner, Role.instructor])
async def test_changes_are_answered_with_503_and_a_time_to_try_again(app: FastAPI, role: Role | None) -> None:
    async with await signed_in_browser(app, role) if role else browser_client(app) as client:
        refused = await client.post("/runs", json=RUN)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "300")
        assert refused.json()["error"]["code"] == "under_maintenance"
        for path in ("/en/settings", "/en/settings/data/delete", "/en/sign-up", "/en/admin/maintenance", "/en/nothing"):
            page = await client.post(path, data={"maintenance": "off"}, headers={"accept": "text/html"})
            assert (page.status_code, page.headers["retry-after"]) == (503, "300")
            assert "Back soon" in page.text
        assert (await client.delete("/en/session")).status_code == 503
        assert (await client.get(f"/en/courses/{LESSON}")).status_code == 200


@pytest.mark.usefixtures("closed")
async def test_downloads_with_work_go_on(client: httpx.AsyncClient) -> None:
    saved = await client.post(f"/en/courses/{LESSON}.ipynb", data={"edits": '{"hello": "mine"}'})

    assert (saved.status_code, '"mine"' in saved.text) == (200, True)


@pytest.mark.usefixtures("closed")
async def test_only_admins_sign_in_and_everyone_can_sign_out(app: FastAPI) -> None:
    for role, status in ((Role.learner, 503), (Role.instructor, 503), (Role.admin, 303)):
        account = await _with_password(app, role)
        async with browser_client(app) as client:
            answer = await client.post("/en/sign-in", data={"email": account.email, "password": PASSWORD})
            assert answer.status_code == status
            assert (await client.get("/en/settings")).status_code == (200 if role is Role.admin else 401)
    async with await signed_in_browser(app) as client:
        assert (await client.post("/en/sign-out")).status_code == 303


async def test_a_code_does_not_complete_a_sign_in_that_began_before(app: FastAPI) -> None:
    account = await _with_password(app, Role.learner)
    async with await signed_in_browser(app, account) as owner:
        phone = await set_up_authenticator(owner, PASSWORD, lambda secret: pyotp.TOTP(secret).now())
    async with browser_client(app) as client:
        await client.post("/en/sign-in", data={"email": account.email, "password": PASSWORD})
        await _turn(app, on=True)
        answer = await client.post("/en/sign-in/code", data={"code": phone.recovery_codes[0]})
        assert answer.status_code == 503
        assert (await client.get("/en/settings")).status_code == 401


@pytest.mark.usefixtures("closed")
async def test_an_admin_goes_on_working_and_turns_it_off(app: FastAPI) -> None:
    admin = await store_account(app.state.db, Role.admin)
    async with await signed_in_browser(app, admin) as client:
        ada = await store_account(app.state.db)
        assert (await client.post(f"/en/admin/people/{ada.id}", data={"verb": "disable"})).status_code == 303
        assert (await client.post("/en/admin/maintenance", data={"maintenance": "perhaps"})).status_code == 422
        assert "has been on since" in (await client.get("/en/admin/maintenance")).text
        assert (await client.post("/en/admin/maintenance", data={"maintenance": "off"})).status_code == 303
        assert "Maintenance mode is off." in (await client.get("/en/admin/maintenance")).text
    async with app.state.db.session() as session:
        entries = select(AuditEntry.action, AuditEntry.actor_id).order_by(AuditEntry.id)
        assert [tuple(row) for row in await session.execute(entries)] == [
            ("account_disabled", admin.id),
            ("maintenance_off", admin.id),
        ]


async def test_an_admin_who_still_needs_a_second_factor_sets_it_up_and_ends_it(settings: Settings) -> None:
    app = create_app(settings.model_copy(update={"staff_second_factor": True}))
    async with app.router.lifespan_context(app):
        admin, teacher = await _with_password(app, Role.admin), await _with_password(app, Role.instructor)
        async with await signed_in_browser(app, admin) as client, await signed_in_browser(app, teacher) as other:
            await _turn(app, on=True)
            assert (await client.post("/en/admin/maintenance", data={"maintenance": "off"})).status_code == 403
            assert (await other.post("/en/settings/security/authenticator")).status_code == 503
            await set_up_authenticator(client, PASSWORD, lambda secret: pyotp.TOTP(secret).now())
            ended = await client.post("/en/admin/maintenance", data={"maintenance": "off", "password": PASSWORD})
            assert ended.status_code == 303
        assert SWITCHES.get(app).edition == ""


async def test_other_sites_cannot_turn_it_on(app: FastAPI) -> None:
    async with await signed_in_browser(app, Role.admin) as client:
        headers = {"sec-fetch-site": "cross-site"}
        answer = await client.post("/en/admin/maintenance", data={"maintenance": "on"}, headers=headers)
    assert (answer.status_code, SWITCHES.get(app).edition) == (403, "")


async def test_a_command_closes_every_web_process_and_opens_it_again(
    app: FastAPI, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site_switches, "POLL_INTERVAL_S", 0.02)
    monkeypatch.setenv("LOCKSTEP_DATA_DIR", str(settings.data_dir))
    monkeypatch.setenv("LOCKSTEP_DATABASE_URL", settings.database)

    async def command(word: str) -> str:
        result = await asyncio.to_thread(CliRunner().invoke, maintenance.app, [word])
        assert result.exit_code == 0, result.output
        return result.output.strip()

    other = create_app(settings)
    async with other.router.lifespan_context(other):
        for word, edition in (("on", "maintenance"), ("off", "")):
            assert await command(word) == f"Maintenance mode is {word}."
            assert await command("status") == word
            async with asyncio.timeout(20):
                while {SWITCHES.get(one).edition for one in (app, other)} != {edition}:  # noqa: ASYNC110 - they poll
                    await asyncio.sleep(0.01)
    async with app.state.db.session() as session:
        assert list(await session.scalars(select(AuditEntry.action).order_by(AuditEntry.id))) == [
            "maintenance_on",
            "maintenance_off",
        ]


@pytest.mark.usefixtures("closed")
async def test_a_process_that_starts_during_maintenance_knows_it(settings: Settings) -> None:
    app = create_app(settings)
    async with app.router.lifespan_context(app), browser_client(app) as client:
        assert (await client.post("/runs", json=RUN)).status_code == 503
