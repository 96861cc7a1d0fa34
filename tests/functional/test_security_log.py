"""The security log: every event of an account's life, by whom, and no secret."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pyotp
import pytest
from fastapi import FastAPI
from sqlalchemy import select, update
from typer.testing import CliRunner

import app as package
from app.accounts.auth_sessions import REAUTHENTICATE_AFTER
from app.accounts.models import Account, AuthSession, Passkey
from app.accounts.rate_limit import ATTEMPTS_PER_ACCOUNT
from app.accounts.second_factor import STEP_S
from app.cli import user
from app.db import now
from app.observability import configure_logging
from app.security_log import SecurityEvent
from app.settings import Settings
from tests.factories.accounts import store_account
from tests.factories.authenticator_app import AUTHENTICATOR_URL, set_up_authenticator
from tests.factories.browser_client import browser_client
from tests.factories.course import LESSON
from tests.factories.mailbox import Mailbox
from tests.factories.passkey_authenticator import Authenticator

EMAIL, NEW_EMAIL, STRANGER = "ada.byron@example.org", "countess@example.org", "nobody.here@example.net"
PASSWORD, NEXT, LAST, WRONG = "correct horse battery", "another good lamp 7", "third wooden spoon 9", "Wr0ng-guess!x"
RUN = {"lesson": LESSON, "cell": "hello", "code": "print(1)"}
ADA = {"name": "Ada Byron", "email": EMAIL, "password": PASSWORD, "time_zone": "Europe/London"}


class Walk:
    """A browser that remembers every secret it has held, and the log of what it did."""

    def __init__(
        self, client: httpx.AsyncClient, settings: Settings, mailbox: Mailbox, capfd: pytest.CaptureFixture[str]
    ) -> None:
        self.client = client
        self._settings = settings.model_copy(update={"log_format": "json", "log_level": "debug"})
        self._mailbox = mailbox
        self._capfd = capfd
        self.log = ""
        self.secrets = {PASSWORD, NEXT, LAST, WRONG, EMAIL, NEW_EMAIL, STRANGER, "someone.else"}

    def begin(self) -> None:
        """Log to the standard error of the test itself."""
        configure_logging(self._settings)

    async def post(self, path: str, status: int = 303, **options: Any) -> httpx.Response:
        answer = await self.client.post(path, **options)
        assert answer.status_code == status, (path, answer.status_code, answer.text)
        self.secrets.update(str(cookie.value) for cookie in self.client.cookies.jar if len(str(cookie.value)) > 8)
        return answer

    async def link(self, address: str, count: int = 1) -> str:
        async with asyncio.timeout(10):
            while len(self._mailbox.to(address)) < count:  # noqa: ASYNC110 - the sender is a task beside us
                await asyncio.sleep(0.01)
        link = self._mailbox.link(address)
        self.secrets.add(link.rpartition("/")[2])
        return link

    def said(self) -> list[tuple[str, str]]:
        """The events since the last call, with their reasons."""
        new = self._capfd.readouterr().err
        self.log += new
        entries = [json.loads(line) for line in new.splitlines()]
        self.entries = [entry for entry in entries if entry.get("log") == "security"]
        return [(entry["event"], entry.get("reason", "")) for entry in self.entries]


@pytest.fixture
async def walk(
    app: FastAPI, settings: Settings, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> AsyncIterator[Walk]:
    mailbox = Mailbox(monkeypatch)
    async with browser_client(app, "2001:db8:1:2::3") as client:
        yield Walk(client, settings, mailbox, capfd)


@pytest.mark.usefixtures("rate_limit_clock")
async def test_an_accounts_life_is_logged_without_any_secret(app: FastAPI, walk: Walk) -> None:
    walk.begin()
    credentials = {"email": EMAIL, "password": PASSWORD}
    await walk.post("/en/sign-up", 200, data=ADA)
    link = await walk.link(EMAIL)
    walk.client.cookies.clear()  # as another browser, which is asked for the password
    await walk.post(link, 422, data={"password": WRONG})
    await walk.client.get(f"{link}.")
    await walk.client.get(f"{link[:-4]}")
    await walk.post(link, data={"password": PASSWORD})
    assert walk.said() == [
        ("account_created", "learner"),
        ("sign_in_failed", "wrong password"),
        ("email_link_refused", "email_link_not_found"),
        ("email_link_refused", "email_link_not_found"),
        ("sign_in", "link"),
    ]
    async with app.state.db.session() as session:
        ada = (await session.scalars(select(Account))).one()
    assert {walk.entries[i]["account"] for i in (0, 1, 4)} == {ada.id}
    assert "account" not in walk.entries[2]
    assert {entry["network"] for entry in walk.entries[1:]} == {"2001:db8:1:2::3"}, "documentation is not a network"
    assert all(len(entry["request_id"]) >= 8 for entry in walk.entries[1:])

    await walk.post("/en/sign-out")
    await walk.post("/en/sign-in", 422, data={**credentials, "email": STRANGER})
    await walk.post("/en/sign-in", 422, data={**credentials, "password": WRONG})
    await walk.post("/en/sign-in", data=credentials)
    assert walk.said() == [
        ("sign_out", ""),
        ("sign_in_failed", "no account"),
        ("sign_in_failed", "wrong password"),
        ("sign_in", "password"),
    ]
    assert [entry.get("account") for entry in walk.entries] == [ada.id, None, ada.id, ada.id]

    change = {"password": PASSWORD, "new_password": NEXT}
    await walk.post("/en/settings/security/password", 422, data={**change, "password": WRONG})
    await walk.post("/en/settings/security/password", data=change)
    await walk.post("/en/settings/security/email", data={"email": NEW_EMAIL, "email_password": NEXT})
    await walk.post(await walk.link(NEW_EMAIL))
    await walk.post("/en/settings/security/sessions", data={"which": "others", "sign_ins_password": NEXT})
    await walk.post("/en/settings/security/sessions", data={"which": "none of mine", "sign_ins_password": NEXT})
    assert (await walk.client.get("/en/moderation")).status_code == 403
    assert (await walk.client.get("/en/settings/data/export")).status_code == 200
    await walk.post("/en/sign-out", 403, headers={"sec-fetch-site": "cross-site"})
    await walk.post("/runs", 422, json={"lesson": 1})
    await walk.post("/runs", 422, json={**RUN, "topology": "tpu:8"})
    await walk.post("/runs", 422, json={**RUN, "code": "print(1)\0"})
    await walk.post("/runs", 415, content="lesson=1", headers={"content-type": "text/plain"})
    assert walk.said() == [
        ("reauthentication_failed", "wrong password"),
        ("password_changed", "settings"),
        ("email_change_requested", ""),
        ("email_changed", ""),
        ("auth_sessions_ended", "others"),
        ("auth_sessions_ended", "one"),
        ("role_refused", "instructor required by moderation"),
        ("data_exported", ""),
        ("cross_site_refused", ""),
        ("input_refused", "invalid_input"),
        ("input_refused", "unsupported_media_type"),
    ]
    assert [entry.get("account") for entry in walk.entries][:9] == [ada.id] * 8 + [None]

    await walk.post("/en/password-reset", 200, data={"email": NEW_EMAIL})
    await walk.post(await walk.link(NEW_EMAIL, 2), data={"password": LAST})
    assert walk.said() == [
        ("password_reset_requested", ""),
        ("password_changed", "link in an email"),
        ("sign_in", "link"),
    ]
    assert {(entry["account"], entry["network"]) for entry in walk.entries} == {(ada.id, "2001:db8:1:2::3")}
    await walk.post("/en/password-reset", 200, data={"email": STRANGER})
    assert walk.said() == [("password_reset_requested", "no account")]
    assert "account" not in walk.entries[0]

    await walk.post("/en/settings/data/delete", data={"password": LAST})
    assert walk.said() == [("account_deleted", "")]
    assert walk.entries[0]["account"] == ada.id

    guess = {"email": "someone.else@example.net", "password": WRONG}
    for _ in range(ATTEMPTS_PER_ACCOUNT.free_attempts):
        await walk.post("/en/sign-in", 422, data=guess)
    await walk.post("/en/sign-in", 429, data=guess)
    assert walk.said()[-1] == ("throttled", "sign-in account")

    assert walk.log.count('"event": "request"') > 20, "all entries were searched, not only those of the security log"
    assert len(walk.secrets) > 15
    assert not [secret for secret in walk.secrets if secret in walk.log]


async def test_passkeys_are_logged_when_they_come_and_go_and_fail(app: FastAPI, walk: Walk) -> None:
    walk.begin()
    ada = await store_account(app.state.db, email=EMAIL)
    async with app.state.db.writing() as session:
        mine = await session.merge(ada)
        mine.password_hash = await app.state.password_hasher.hash(PASSWORD)
    walk.client.base_url = httpx.URL("http://localhost")
    await walk.post("/en/sign-in", data={"email": EMAIL, "password": PASSWORD})
    device = Authenticator()
    named = {"passkey_name": "My phone", "passkey_password": PASSWORD}
    options = (await walk.post("/en/settings/security/passkeys/options", 200, data=named)).json()
    await walk.post("/en/settings/security/passkeys", 200, json={"credential": device.make(options)})
    options = (await walk.post("/en/passkey/options", 200)).json()
    credential = device.sign(options)
    await walk.post("/en/passkey/sign-in", 200, json={"credential": credential})
    await walk.post("/en/passkey/sign-in", 410, json={"credential": credential})
    async with app.state.db.session() as session:
        passkey = (await session.scalars(select(Passkey.id))).one()
    await walk.post(f"/en/settings/security/passkeys/{passkey}/remove", data={"password": PASSWORD})

    assert walk.said() == [
        ("account_created", "learner"),
        ("sign_in", "password"),
        ("passkey_added", ""),
        ("sign_in", "passkey"),
        ("sign_in_failed", "auth_challenge_expired"),
        ("passkey_removed", ""),
    ]
    walk.secrets.update((options["challenge"], credential["id"], credential["response"]["signature"]))
    assert not [secret for secret in walk.secrets if secret in walk.log]


async def test_an_authenticator_app_is_logged_when_it_comes_and_goes(app: FastAPI, walk: Walk) -> None:
    walk.begin()
    ada = await store_account(app.state.db, email=EMAIL)
    async with app.state.db.writing() as session:
        mine = await session.merge(ada)
        mine.password_hash = await app.state.password_hasher.hash(PASSWORD)
    await walk.post("/en/sign-in", data={"email": EMAIL, "password": PASSWORD})
    device = await set_up_authenticator(walk.client, PASSWORD, lambda secret: pyotp.TOTP(secret).now())
    await walk.post(f"{AUTHENTICATOR_URL}/remove", data={"remove_password": PASSWORD})

    assert walk.said() == [
        ("account_created", "learner"),
        ("sign_in", "password"),
        ("authenticator_added", ""),
        ("authenticator_removed", ""),
    ]
    walk.secrets.update((device.secret, device.key, *device.recovery_codes))
    assert not [secret for secret in walk.secrets if secret in walk.log]


async def test_each_step_of_a_sign_in_with_a_code_is_logged(app: FastAPI, walk: Walk) -> None:
    walk.begin()
    ada = await store_account(app.state.db, email=EMAIL)
    async with app.state.db.writing() as session:
        mine = await session.merge(ada)
        mine.password_hash = await app.state.password_hasher.hash(PASSWORD)
    await walk.post("/en/sign-in", data={"email": EMAIL, "password": PASSWORD})
    page = (await walk.post(AUTHENTICATOR_URL, 200, data={"password": PASSWORD})).text
    key = page.split('name="key" value="')[1].split('"')[0]
    await walk.post(f"{AUTHENTICATOR_URL}/confirm", 422, data={"key": key, "code": "not a code"})
    device = await set_up_authenticator(walk.client, PASSWORD, lambda secret: pyotp.TOTP(secret).now())
    await walk.post("/en/sign-out")
    assert walk.said() == [
        ("account_created", "learner"),
        ("sign_in", "password"),
        ("reauthentication_failed", "wrong code"),
        ("authenticator_added", ""),
        ("sign_out", ""),
    ]
    for code in (pyotp.TOTP(device.secret).at(now() + timedelta(seconds=STEP_S)), device.recovery_codes[0]):
        await walk.post("/en/sign-in", data={"email": EMAIL, "password": PASSWORD})
        await walk.post("/en/sign-in/code", 422, data={"code": "not a code"})
        await walk.post("/en/sign-in/code", data={"code": code})
    async with app.state.db.writing() as session:
        await session.execute(update(AuthSession).values(created_at=now() - REAUTHENTICATE_AFTER))
    await walk.post(f"{AUTHENTICATOR_URL}/remove", 422, data={"remove_password": PASSWORD})

    steps = [("second_step_asked", "password"), ("sign_in_failed", "wrong code")]
    assert walk.said() == [
        *(*steps, ("sign_in", "password+totp")),
        *(*steps, ("sign_in", "recovery code")),
        ("reauthentication_failed", "sign-in too old"),
    ]
    assert {entry["account"] for entry in walk.entries} == {ada.id}
    walk.secrets.update((device.secret, device.key, *device.recovery_codes))
    assert not [secret for secret in walk.secrets if secret in walk.log]


async def test_a_disabled_account_that_signs_in_is_logged(app: FastAPI, walk: Walk) -> None:
    walk.begin()
    ada = await store_account(app.state.db, email=EMAIL)
    hashed = await app.state.password_hasher.hash(PASSWORD)
    async with app.state.db.writing() as session:
        await session.execute(update(Account).values(password_hash=hashed, disabled_at=now()))
    walk.said()

    await walk.post("/en/sign-in", 403, data={"email": EMAIL, "password": PASSWORD})

    await walk.post("/en/password-reset", 200, data={"email": EMAIL})

    assert walk.said() == [("sign_in_failed", "account disabled"), ("password_reset_requested", "account disabled")]
    assert {entry["account"] for entry in walk.entries} == {ada.id}


def test_commands_log_what_they_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("LOCKSTEP_LOG_FORMAT", "json")

    def events(*arguments: str, typed: str = "") -> list[tuple[str, str]]:
        result = CliRunner().invoke(user.app, [*arguments], input=typed)
        assert result.exit_code == 0, result.output
        assert PASSWORD not in result.output
        lines = [json.loads(line) for line in result.stderr.splitlines() if line.startswith("{")]
        return [(line["event"], line.get("reason", "")) for line in lines if line["log"] == "security"]

    created = events("create", EMAIL, "--role", "instructor", "--password-stdin", typed=PASSWORD)
    assert created == [("role_changed", "instructor")]
    assert events("role", EMAIL, "admin") == [("role_changed", "admin")]
    assert events("disable", EMAIL) == [("account_disabled", "")]
    assert events("enable", EMAIL) == [("account_enabled", "")]


def test_every_event_is_documented() -> None:
    page = (Path(package.__file__).parents[1] / "docs" / "operate" / "security-log.md").read_text(encoding="utf-8")

    assert [event for event in SecurityEvent if f"`{event}`" not in page] == []
