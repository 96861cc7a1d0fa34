"""What people can change about their account, export, and delete."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import timedelta

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import func, select, update

from app.accounts.auth_sessions import (
    AUTH_SESSION_LIFETIME,
    MAX_AUTH_SESSION_LIFETIME,
    REAUTHENTICATE_AFTER,
    SEEN_AT_PRECISION,
    create_auth_session,
)
from app.accounts.models import Account, AuthSession, RetiredHandle
from app.accounts.session_cookie import SESSION_COOKIE
from app.db import Base, now
from app.progress.models import LedgerEntry
from tests.factories.accounts import signed_in_browser, store_account
from tests.factories.browser_client import browser_client, press_run
from tests.factories.mailbox import Mailbox
from tests.factories.scripted_supervisor import ScriptedSupervisor

PASSWORD, NEW = "correct horse battery", "another good one"
PROFILE = {
    "name": "Ada B.",
    "handle": "@Countess",
    "time_zone": "Asia/Seoul",
    "language": "ko",
    "email_frequency": "daily",
}


@pytest.fixture
def mailbox(monkeypatch: pytest.MonkeyPatch) -> Mailbox:
    return Mailbox(monkeypatch)


@pytest.fixture
async def account(app: FastAPI) -> Account:
    account = await store_account(app.state.db, email="ada@example.org")
    async with app.state.db.writing() as session:
        mine: Account = await session.merge(account)
        mine.password_hash = await app.state.password_hasher.hash(PASSWORD)
    return mine


@pytest.fixture
async def ada(app: FastAPI, account: Account) -> AsyncIterator[httpx.AsyncClient]:
    async with await signed_in_browser(app, account) as client:
        yield client


async def stored(app: FastAPI) -> Account:
    async with app.state.db.session() as session:
        found: Account = (await session.scalars(select(Account).where(Account.email_key.like("%@example.org")))).one()
        return found


async def names(client: httpx.AsyncClient) -> bool:
    """Whether the header shows the account."""
    return "@" in (await client.get("/en/account-menu")).text


async def test_a_profile_is_saved_and_said_to_be(app: FastAPI, ada: httpx.AsyncClient) -> None:
    saved = await ada.post("/en/settings", data={**PROFILE, "public_profile": "on"})

    assert saved.headers["location"] == "/en/settings"
    assert "Saved." in (await ada.get("/en/settings")).text
    now_ = await stored(app)
    assert (now_.name, now_.handle, now_.time_zone, now_.language) == ("Ada B.", "countess", "Asia/Seoul", "ko")
    assert (now_.email_frequency, now_.public_profile) == ("daily", True)


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("name", " ", "Enter a name"),
        ("name", "\u0410dmin", "This name could be mistaken"),
        ("handle", "-ada", "Use 3 to 30 lowercase letters"),
        ("handle", "other-one", "This handle is taken, was used before"),
        ("handle", "Adm1n", "This handle is taken, was used before"),
        ("time_zone", "Mars/Olympus", "Choose a time zone"),
    ],
)
async def test_a_profile_that_cannot_be_is_refused_beside_the_field(
    app: FastAPI, ada: httpx.AsyncClient, field: str, value: str, sentence: str
) -> None:
    await store_account(app.state.db, name="Other One", email="other@example.com")

    refused = await ada.post("/en/settings", data={**PROFILE, field: value})

    assert refused.status_code == 422
    assert f'id="wrong-{field}">{sentence}' in refused.text
    assert (await stored(app)).name == "Ada Byron"


async def test_a_new_password_signs_every_other_browser_out_and_gives_this_one_a_new_token(
    app: FastAPI, ada: httpx.AsyncClient, account: Account, mailbox: Mailbox
) -> None:
    before = ada.cookies[SESSION_COOKIE]
    async with await signed_in_browser(app, account) as other:
        wrong = await ada.post("/en/settings/security/password", data={"password": "no", "new_password": NEW})
        assert wrong.status_code == 422
        assert "Incorrect password." in wrong.text
        weak = await ada.post("/en/settings/security/password", data={"password": PASSWORD, "new_password": "ada"})
        assert "Use at least 12 characters." in weak.text
        assert await names(other)

        done = await ada.post("/en/settings/security/password", data={"password": PASSWORD, "new_password": NEW})

        assert done.status_code == 303
        assert await names(ada)
        assert not await names(other)
    assert ada.cookies[SESSION_COOKIE] != before
    async with browser_client(app) as again:
        form = {"email": "ada@example.org", "password": NEW}
        assert (await again.post("/en/sign-in", data=form)).status_code == 303
    async with asyncio.timeout(10):
        while not mailbox.to("ada@example.org"):  # noqa: ASYNC110 - the sender is a task beside us
            await asyncio.sleep(0.01)
    assert "password" in mailbox.to("ada@example.org")[0].subject


async def test_a_new_address_counts_once_its_link_is_opened_and_the_old_one_is_notified(
    app: FastAPI, ada: httpx.AsyncClient, mailbox: Mailbox
) -> None:
    form = {"email": "countess@example.org", "email_password": PASSWORD}
    assert (await ada.post("/en/settings/security/email", data=form)).status_code == 303
    async with asyncio.timeout(10):
        while not mailbox.to("countess@example.org"):  # noqa: ASYNC110 - the sender is a task beside us
            await asyncio.sleep(0.01)
    assert (await stored(app)).email == "ada@example.org"
    link = mailbox.link("countess@example.org")
    assert "countess@example.org" in (await ada.get(link)).text

    assert (await ada.post(link)).status_code == 303

    assert (await stored(app)).email == "countess@example.org"
    async with asyncio.timeout(10):
        while not mailbox.to("ada@example.org"):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert "email address was changed" in mailbox.to("ada@example.org")[0].subject


async def test_the_address_of_another_account_is_not_revealed(
    app: FastAPI, ada: httpx.AsyncClient, mailbox: Mailbox
) -> None:
    await store_account(app.state.db, email="taken@example.com")
    answers = []
    for email in ("taken@example.com", "free@example.com"):
        form = {"email": email, "email_password": PASSWORD}
        answers.append(await ada.post("/en/settings/security/email", data=form))
    assert answers[0].status_code == answers[1].status_code == 303
    async with asyncio.timeout(10):
        while not mailbox.to("taken@example.com") or not mailbox.to("free@example.com"):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert "already" in mailbox.to("taken@example.com")[0].subject


async def test_sign_ins_are_listed_and_ended_one_by_one_or_all_at_once(
    app: FastAPI, ada: httpx.AsyncClient, account: Account
) -> None:
    async with await signed_in_browser(app, account) as one, await signed_in_browser(app, account) as two:
        assert (await ada.get("/en/settings/security")).text.count("192.0.2.1") == 3
        async with app.state.db.session() as session:
            ids = (await session.scalars(select(AuthSession.public_id).order_by(AuthSession.last_seen_at))).all()
        for wrong in ({}, {"sign_ins_password": "not the password"}):
            assert (
                await ada.post("/en/settings/security/sessions", data={"which": "others", **wrong})
            ).status_code == 422
            assert [await names(client) for client in (ada, one, two)] == [True, True, True]
        await ada.post("/en/settings/security/sessions", data={"which": ids[1], "sign_ins_password": PASSWORD})
        assert [await names(client) for client in (ada, one, two)] == [True, False, True]
        await ada.post("/en/settings/security/sessions", data={"which": "others", "sign_ins_password": PASSWORD})
        assert [await names(client) for client in (ada, one, two)] == [True, False, False]


async def test_nobody_ends_the_sign_ins_of_another(app: FastAPI, ada: httpx.AsyncClient) -> None:
    async with await signed_in_browser(app) as other:
        async with app.state.db.session() as session:
            ids = (await session.scalars(select(AuthSession.public_id))).all()
        for each in ids:
            await other.post("/en/settings/security/sessions", data={"which": each})
        assert await names(ada)


async def test_a_sign_in_lasts_from_its_last_use_on(app: FastAPI, ada: httpx.AsyncClient) -> None:
    await ada.get("/en/account-menu")  # the first answer names the account to the page's scripts
    assert "set-cookie" not in (await ada.get("/en/account-menu")).headers
    async with app.state.db.writing() as session:
        await session.execute(
            update(AuthSession).values(last_seen_at=now() - SEEN_AT_PRECISION, expires_at=now() + SEEN_AT_PRECISION)
        )

    renewed = await ada.get("/en/account-menu")

    assert f"Max-Age={30 * 24 * 3600}" in renewed.headers["set-cookie"]
    async with app.state.db.session() as session:
        sign_in = (await session.scalars(select(AuthSession))).one()
    assert sign_in.expires_at > now() + AUTH_SESSION_LIFETIME - SEEN_AT_PRECISION
    async with app.state.db.writing() as session:
        await session.execute(update(AuthSession).values(expires_at=now()))
    assert not await names(ada)


async def test_a_session_in_constant_use_ends_with_its_cookies_90_days_after_the_sign_in(
    app: FastAPI, ada: httpx.AsyncClient
) -> None:
    await ada.get("/en/account-menu")
    left = timedelta(hours=2)
    async with app.state.db.writing() as session:
        used = {"last_seen_at": now() - SEEN_AT_PRECISION, "expires_at": now() + AUTH_SESSION_LIFETIME}
        signed_in_at = now() - MAX_AUTH_SESSION_LIFETIME + left
        await session.execute(update(AuthSession).values(created_at=signed_in_at, **used))

    renewed = await ada.get("/en/account-menu")

    ages = [int(age) for age in re.findall(r"Max-Age=([0-9]+)", "\n".join(renewed.headers.get_list("set-cookie")))]
    assert len(ages) == 2  # the token, and what tells scripts whose browser it is
    assert all(left.total_seconds() - 60 < age <= left.total_seconds() for age in ages)
    async with app.state.db.session() as session:
        sign_in = (await session.scalars(select(AuthSession))).one()
    assert sign_in.expires_at == signed_in_at + MAX_AUTH_SESSION_LIFETIME


async def test_everything_kept_of_a_person_is_one_json_document(
    app: FastAPI, ada: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    await press_run(ada, "print('mine')")
    async with browser_client(app) as other:
        await press_run(other, "print('theirs')")

    answer = await ada.get("/en/settings/data/export")

    assert answer.headers["content-disposition"] == 'attachment; filename="lockstep-ada-byron.json"'
    document = answer.json()
    assert document["account"][0]["email"] == "ada@example.org"
    assert [run["code"] for run in document["runs"]] == ["print('mine')"]
    assert "argon2" not in answer.text
    assert document["progress"] == []


async def test_a_deleted_account_leaves_nothing_of_its_own(
    app: FastAPI, ada: httpx.AsyncClient, account: Account, supervisor: ScriptedSupervisor
) -> None:
    supervisor.answer = ["done"]
    await press_run(ada)
    assert len(supervisor.sessions) == 1
    async with app.state.db.writing() as session:
        session.add(
            LedgerEntry(
                learner_id=account.learner_id, kind="cell", subject="small/first#hello", xp=5, occurred_at=now()
            )
        )
    page = (await ada.get("/en/settings/data")).text
    gone, kept = page.split("permanently:")[1].split("Kept, without your name:")
    for what in ("earlier versions of comments", "memberships in groups", "API tokens", "copies of your playground"):
        assert what in gone
    assert "audit log" in kept
    wrong = await ada.post("/en/settings/data/delete", data={"password": "no"})
    assert wrong.status_code == 422

    done = await ada.post("/en/settings/data/delete", data={"password": PASSWORD})

    assert done.headers["location"] == "/en/"
    assert SESSION_COOKIE not in ada.cookies
    async with app.state.db.session() as session:
        left = {
            table.name: count
            for table in Base.metadata.sorted_tables
            if (count := await session.scalar(select(func.count()).select_from(table)))
        }
        handle = (await session.scalars(select(RetiredHandle))).one()
    assert left == {"retired_handles": 1}, "rows of a deleted account"
    assert not supervisor.sessions, "what its code holds in memory and in files"
    assert handle.account_id is None
    assert (await ada.get("/en/settings")).status_code == 401


async def test_a_deleted_account_ends_what_its_browsers_began_as_visitors(
    app: FastAPI, account: Account, supervisor: ScriptedSupervisor
) -> None:
    supervisor.answer = ["done"]
    async with browser_client(app) as mine, browser_client(app) as stranger:
        await press_run(mine)
        await press_run(stranger)
        theirs = (await supervisor.run()).request.session
        await mine.post("/en/sign-in", data={"email": account.email, "password": PASSWORD})
        await press_run(mine)
        assert len(supervisor.sessions) == 3

        assert (await mine.post("/en/settings/data/delete", data={"password": PASSWORD})).status_code == 303

    assert set(supervisor.sessions) == {theirs}


async def test_without_a_password_a_fresh_sign_in_is_asked_for(app: FastAPI) -> None:
    async with await signed_in_browser(app) as client:
        async with app.state.db.writing() as session:
            await session.execute(update(AuthSession).values(created_at=now() - REAUTHENTICATE_AFTER))
        refused = await client.post("/en/settings/data/delete")
        assert refused.status_code == 422
        assert "You signed in a while ago" in refused.text
        async with app.state.db.writing() as session:
            await session.execute(update(AuthSession).values(created_at=now()))
        assert (await client.post("/en/settings/data/delete")).status_code == 303


async def test_a_form_without_a_password_says_why_it_was_refused(app: FastAPI) -> None:
    forms = {
        "password": ("password", {"new_password": "a lamp in the window"}),
        "email_password": ("email", {"email": "new@example.org"}),
        "sign_ins_password": ("sessions", {"which": "others"}),
    }
    async with await signed_in_browser(app) as client:
        async with app.state.db.writing() as session:
            account = (await session.scalars(select(Account))).one()
            await create_auth_session(session, account, method="oidc")
            await session.execute(update(AuthSession).values(created_at=now() - REAUTHENTICATE_AFTER))
        for field, (path, values) in forms.items():
            refused = await client.post(f"/en/settings/security/{path}", data=values)
            assert refused.status_code == 422
            said = refused.text.partition(f'id="wrong-{field}">')[2]
            assert said.startswith("You signed in a while ago"), path


async def test_a_stranger_is_led_to_the_sign_in_and_back(client: httpx.AsyncClient) -> None:
    led = await client.get("/ko/settings/security", headers={"accept": "text/html"})

    assert led.headers["location"] == "/ko/sign-in?next=%2Fko%2Fsettings%2Fsecurity"
    assert 'name="next" value="/ko/settings/security"' in (await client.get(led.headers["location"])).text
    too_late = await client.post("/ko/settings", headers={"accept": "text/html"})
    assert too_late.status_code == 401
    assert '<a class="button primary" href="/ko/sign-in">' in too_late.text
