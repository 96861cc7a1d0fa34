"""Passkeys, with a software authenticator: what signs in to an account, and everything that does not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import httpx
import pyotp
import pytest
from fastapi import FastAPI
from sqlalchemy import select, update
from webauthn.helpers import bytes_to_base64url

from app.accounts import auth_challenges
from app.accounts.auth_sessions import REAUTHENTICATE_AFTER
from app.accounts.models import Account, AuthChallenge, AuthSession, Passkey
from app.accounts.models import Authenticator as AuthenticatorApp
from app.accounts.passkeys import RelyingParty, relying_party_at
from app.accounts.rate_limit import AUTH_CHALLENGES
from app.accounts.session_cookie import SESSION_COOKIE
from app.db import now
from app.rate_limit import RateLimitCounter
from tests.factories.accounts import signed_in_browser, store_account
from tests.factories.authenticator_app import set_up_authenticator
from tests.factories.browser_client import browser_client, press_run
from tests.factories.mailbox import Mailbox
from tests.factories.passkey_authenticator import PRESENT, Authenticator
from tests.factories.scripted_supervisor import ScriptedSupervisor

PASSWORD = "correct horse battery"


def at_localhost(client: httpx.AsyncClient) -> httpx.AsyncClient:
    client.base_url = httpx.URL("http://localhost")
    for cookie in list(client.cookies.jar):
        client.cookies.set(cookie.name, str(cookie.value), domain="localhost.local")
    return client


@pytest.fixture
async def account(app: FastAPI) -> Account:
    return await store_account(app.state.db, email="ada@example.org")


@pytest.fixture
async def ada(app: FastAPI, account: Account) -> AsyncIterator[httpx.AsyncClient]:
    async with await signed_in_browser(app, account) as client:
        yield at_localhost(client)


@pytest.fixture
async def other(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """A browser that is not signed in."""
    async with browser_client(app) as client:
        yield at_localhost(client)


async def options_for_new(client: httpx.AsyncClient, name: str = "My phone", password: str = "") -> httpx.Response:
    typed = {"passkey_name": name, "passkey_password": password}
    return await client.post("/en/settings/security/passkeys/options", data=typed)


async def added(client: httpx.AsyncClient, name: str = "My phone") -> Authenticator:
    device = Authenticator()
    options = (await options_for_new(client, name)).json()
    answer = await client.post("/en/settings/security/passkeys", json={"credential": device.make(options)})
    assert answer.status_code == 200, answer.text
    return device


async def asked(client: httpx.AsyncClient) -> dict[str, Any]:
    answer = await client.post("/en/passkey/options")
    assert answer.status_code == 200
    options: dict[str, Any] = answer.json()
    return options


async def sign_in(client: httpx.AsyncClient, credential: object, next_: str = "") -> httpx.Response:
    return await client.post("/en/passkey/sign-in", json={"credential": credential, "next": next_})


async def test_a_passkey_opens_the_account_and_gives_a_new_token(
    app: FastAPI, ada: httpx.AsyncClient, other: httpx.AsyncClient
) -> None:
    device = await added(ada)
    options = await asked(other)

    answer = await sign_in(other, device.sign(options), "/en/settings")

    assert options["userVerification"] == "required"
    assert options["rpId"] == "localhost"
    assert answer.json() == {"next": "/en/settings"}
    assert "@ada-byron" in (await other.get("/en/account-menu")).text
    first = other.cookies[SESSION_COOKIE]
    assert (await sign_in(other, device.sign(await asked(other)))).json() == {"next": "/en/"}
    assert other.cookies[SESSION_COOKIE] != first
    async with app.state.db.session() as session:
        methods = (await session.scalars(select(AuthSession.method))).all()
        passkey = (await session.scalars(select(Passkey))).one()
    assert sorted(methods) == ["passkey", "password"], "the sign-in before was not ended"
    assert passkey.sign_count == 2
    assert passkey.last_used_at is not None
    assert "My phone" in (await ada.get("/en/settings/security")).text


async def test_a_new_sign_in_method_is_announced_by_email(
    ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    mailbox = Mailbox(monkeypatch)
    await added(ada)

    async with asyncio.timeout(10):
        while not mailbox.to("ada@example.org"):  # noqa: ASYNC110 - the sender is a task beside us
            await asyncio.sleep(0.01)
    assert "New sign-in method for your Lockstep account" in mailbox.to("ada@example.org")[0].subject
    assert mailbox.link("ada@example.org") == "/en/password-reset"


async def test_what_a_visitor_did_comes_in_with_a_passkey_too(
    ada: httpx.AsyncClient, other: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    device = await added(ada)
    await press_run(other)

    await sign_in(other, device.sign(await asked(other)))

    assert "Imported from this browser: 1 run." in (await other.get("/en/account-menu")).text
    assert "lockstep_visitor" not in other.cookies


@pytest.mark.parametrize("next_", ["https://evil.test/", "//evil.test/", "/\\evil.test", 7])
async def test_a_passkey_leads_nowhere_else(ada: httpx.AsyncClient, other: httpx.AsyncClient, next_: Any) -> None:
    device = await added(ada)

    assert (await sign_in(other, device.sign(await asked(other)), next_)).json() == {"next": "/en/"}


def _another_key(device: Authenticator) -> None:
    device.key = Authenticator().key


def _another_user(device: Authenticator) -> None:
    device.user = b"0" * 32


def _unverified(device: Authenticator) -> None:
    device.flags = PRESENT


def _absent(device: Authenticator) -> None:
    device.flags = 0


def _other_place(device: Authenticator) -> None:
    device.rp_id = "evil.test"


def _other_origin(device: Authenticator) -> None:
    device.origin = "https://evil.test"


def _unknown(device: Authenticator) -> None:
    device.id = Authenticator().id


@pytest.mark.parametrize(
    "forge", [_another_key, _another_user, _unverified, _absent, _other_place, _other_origin, _unknown]
)
async def test_a_forged_answer_opens_nothing_and_says_one_thing(
    ada: httpx.AsyncClient, other: httpx.AsyncClient, forge: Callable[[Authenticator], None]
) -> None:
    device = await added(ada)
    forge(device)

    refused = await sign_in(other, device.sign(await asked(other)))

    assert refused.status_code == 422
    assert "No account here uses this passkey" in refused.text
    assert SESSION_COOKIE not in other.cookies


async def test_an_answer_of_another_kind_opens_nothing(ada: httpx.AsyncClient, other: httpx.AsyncClient) -> None:
    device = await added(ada)

    assert (await sign_in(other, device.sign(await asked(other), type="webauthn.create"))).status_code == 422


async def test_an_answer_opens_once_in_the_browser_that_asked_and_in_time(
    ada: httpx.AsyncClient, other: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = await added(ada)
    answer = device.sign(await asked(other))
    assert (await sign_in(ada, answer)).status_code == 410, "in another browser"
    assert (await sign_in(other, answer)).status_code == 200
    assert (await sign_in(other, answer)).status_code == 410, "again"
    late = device.sign(await asked(other))
    monkeypatch.setattr(auth_challenges, "now", lambda: now() + auth_challenges.CHALLENGE_LIFETIME)
    refused = await sign_in(other, late)
    assert refused.status_code == 410
    assert "took too long" in refused.text


async def test_a_wrong_answer_uses_the_challenge_up(ada: httpx.AsyncClient, other: httpx.AsyncClient) -> None:
    device = await added(ada)
    options = await asked(other)
    right = device.key
    _another_key(device)
    await sign_in(other, device.sign(options))
    device.key = right

    assert (await sign_in(other, device.sign(options))).status_code == 410


async def test_a_copy_of_a_device_is_found_by_its_count(ada: httpx.AsyncClient, other: httpx.AsyncClient) -> None:
    device = await added(ada)
    await sign_in(other, device.sign(await asked(other)))
    device.count = 0

    assert (await sign_in(other, device.sign(await asked(other)))).status_code == 422


@pytest.mark.parametrize(
    "credential",
    [None, [], {}, {"id": "\0"}, {"id": "x", "response": {"clientDataJSON": "e30"}}, {"id": 1, "response": 1}],
)
async def test_what_is_no_answer_is_refused_in_words(other: httpx.AsyncClient, credential: object) -> None:
    refused = await sign_in(other, credential)

    assert refused.status_code == 422
    assert "could not be verified" in refused.text


async def test_a_school_behind_one_address_looks_at_the_sign_in_as_often_as_it_likes(app: FastAPI) -> None:
    school = httpx.ASGITransport(app, client=("8.8.8.8", 1))
    same_origin = {"sec-fetch-site": "same-origin"}
    async with httpx.AsyncClient(transport=school, base_url="http://localhost", headers=same_origin) as pupil:
        answers = {
            (await pupil.post("/en/passkey/options")).status_code for _ in range(AUTH_CHALLENGES.free_attempts + 20)
        }

    assert answers == {200}
    async with app.state.db.session() as session:
        for table in (AuthChallenge, RateLimitCounter):
            assert (await session.scalars(select(table))).all() == [], "a row for each look"


@pytest.mark.usefixtures("rate_limit_clock")
async def test_guessing_is_slowed_down(ada: httpx.AsyncClient, other: httpx.AsyncClient) -> None:
    device = await added(ada)
    _another_key(device)

    answers = [await sign_in(other, device.sign(await asked(other))) for _ in range(6)]

    assert [answer.status_code for answer in answers] == [422] * 5 + [429]


async def test_a_disabled_account_stays_shut(app: FastAPI, ada: httpx.AsyncClient, other: httpx.AsyncClient) -> None:
    device = await added(ada)
    async with app.state.db.writing() as session:
        await session.execute(update(Account).values(disabled_at=now()))

    assert (await sign_in(other, device.sign(await asked(other)))).status_code == 403


async def test_a_new_passkey_needs_a_name_and_the_password(
    app: FastAPI, ada: httpx.AsyncClient, account: Account
) -> None:
    async with app.state.db.writing() as session:
        hashed = await app.state.password_hasher.hash(PASSWORD)
        await session.execute(update(Account).values(password_hash=hashed))

    refused = await options_for_new(ada, " ", "not that one")

    assert refused.status_code == 422
    wrong = refused.json()["errors"]
    assert wrong["passkey_password"] == "Incorrect password."
    assert "Enter a name" in wrong["passkey_name"]
    assert (await options_for_new(ada, "My phone", PASSWORD)).status_code == 200


async def test_without_a_password_a_fresh_sign_in_is_needed(app: FastAPI, ada: httpx.AsyncClient) -> None:
    device = await added(ada)
    await added(ada, "Another")
    async with app.state.db.writing() as session:
        await session.execute(
            update(AuthSession).values(created_at=now() - REAUTHENTICATE_AFTER - timedelta(seconds=1))
        )

    refused = await options_for_new(ada)

    assert "Sign out, sign in again" in refused.json()["errors"]["passkey_password"]
    passkey = bytes_to_base64url(device.id)
    assert (await ada.post(f"/en/settings/security/passkeys/{passkey}/remove")).status_code == 422


async def test_a_passkey_is_created_once_for_its_requester_with_its_owner_verified(
    app: FastAPI, ada: httpx.AsyncClient
) -> None:
    options = (await options_for_new(ada)).json()
    device = Authenticator()
    answer = {"credential": device.make(options)}
    async with await signed_in_browser(app) as client:
        thief = at_localhost(client)
        for cookie in ada.cookies.jar:
            if "auth_challenge" in cookie.name:
                thief.cookies.set(cookie.name, str(cookie.value), domain="localhost.local")
        assert (await thief.post("/en/settings/security/passkeys", json=answer)).status_code == 422
    assert (await ada.post("/en/settings/security/passkeys", json=answer)).status_code == 410, "it was used up"
    unseen = Authenticator()
    unseen.flags = PRESENT
    told = {"credential": unseen.make((await options_for_new(ada)).json())}
    assert (await ada.post("/en/settings/security/passkeys", json=told)).status_code == 422
    device = await added(ada)
    again = {"credential": device.make((await options_for_new(ada)).json())}
    assert (await ada.post("/en/settings/security/passkeys", json=again)).status_code == 409


@pytest.mark.parametrize("added_by", ["the owner's passkey", "the owner's app", "a row"])
async def test_a_passkey_that_a_thief_began_to_add_is_refused_after_a_second_factor(
    app: FastAPI, account: Account, ada: httpx.AsyncClient, added_by: str
) -> None:
    async with app.state.db.writing() as session:
        hashed = await app.state.password_hasher.hash(PASSWORD)
        await session.execute(update(Account).values(password_hash=hashed))
    async with await signed_in_browser(app, account) as client:
        eve = at_localhost(client)
        device = Authenticator()
        credential = {"credential": device.make((await options_for_new(eve, "Mine", PASSWORD)).json())}
        if added_by == "the owner's passkey":
            options = (await options_for_new(ada, "Hers", PASSWORD)).json()
            made = await ada.post("/en/settings/security/passkeys", json={"credential": Authenticator().make(options)})
            assert made.status_code == 200
        elif added_by == "the owner's app":
            await set_up_authenticator(ada, PASSWORD, lambda secret: pyotp.TOTP(secret).now())
        else:
            async with app.state.db.writing() as session:
                session.add(AuthenticatorApp(account_id=account.id, secret="S" * 32, last_step=0, created_at=now()))

        refused = await eve.post("/en/settings/security/passkeys", json=credential)

        assert refused.status_code == (403 if added_by == "a row" else 410)
        assert (await sign_in(eve, device.sign(await asked(eve)))).status_code == 422


async def test_a_passkey_is_renamed_and_removed_but_not_the_last_way_in(
    app: FastAPI, ada: httpx.AsyncClient, other: httpx.AsyncClient
) -> None:
    device = await added(ada)
    async with app.state.db.session() as session:
        path = f"/en/settings/security/passkeys/{(await session.scalars(select(Passkey))).one().id}"
    assert (await ada.post(path, data={"name": "The blue one"})).status_code == 303
    assert "The blue one" in (await ada.get(path)).text
    async with await signed_in_browser(app) as stranger:
        asked_for = (stranger.get(path), stranger.post(path, data={"name": "Mine"}), stranger.post(f"{path}/remove"))
        assert [(await answer).status_code for answer in asked_for] == [404] * 3, "it is there, and not theirs"
    assert "The blue one" in (await ada.get(path)).text
    unnamed = await ada.post(path, data={"name": " "})
    assert unnamed.status_code == 422
    assert "wrong-name" in unnamed.text

    refused = await ada.post(f"{path}/remove")

    assert refused.status_code == 409
    assert "only way to sign in" in refused.text
    await added(ada, "Another")
    assert (await ada.post(f"{path}/remove")).status_code == 303
    assert (await sign_in(other, device.sign(await asked(other)))).status_code == 422
    assert (await ada.get(path)).status_code == 404


async def test_at_an_address_of_numbers_the_page_says_where_passkeys_work(app: FastAPI) -> None:
    async with browser_client(app) as client:
        client.base_url = httpx.URL("http://127.0.0.1:8000")
        page = (await client.get("/en/sign-in")).text
        assert "data-passkey-sign-in" not in page
        assert 'href="http://localhost:8000/en/sign-in"' in page
        assert (await client.post("/en/passkey/options")).status_code == 409
        client.base_url = httpx.URL("http://learn.example.org")
        page = (await client.get("/en/sign-in")).text
        assert "data-passkey-sign-in" not in page, "a name that only the request says"
        assert "need a host name" not in page


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("https://learn.example.org", RelyingParty("learn.example.org", "https://learn.example.org")),
        ("https://learn.example.org:8443", RelyingParty("learn.example.org", "https://learn.example.org:8443")),
        ("http://localhost:8000", RelyingParty("localhost", "http://localhost:8000")),
        ("http://learn.example.org", None),
        ("https://192.0.2.1", None),
        ("https://[2001:db8::1]", None),
    ],
)
def test_passkeys_belong_to_a_name_behind_tls_or_on_this_machine(address: str, place: RelyingParty | None) -> None:
    assert relying_party_at(address) == place
