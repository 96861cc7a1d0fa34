"""API tokens: made in the settings, shown once, and of no use to anyone but a program that may read."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import timedelta

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import select, update

from app.accounts import api_access
from app.accounts.api_tokens import MAX_TOKENS, TokenScope
from app.accounts.auth_sessions import REAUTHENTICATE_AFTER
from app.accounts.cleanup import clean_up
from app.accounts.models import Account, ApiToken, AuthSession
from app.admin.audit import Actor
from app.admin.people import disable_account
from app.db import now
from app.observability import configure_logging
from app.settings import Settings
from app.site_switches import Switch, turn
from app.web.maintenance import SWITCHES
from tests.factories.accounts import signed_in_browser, store_account
from tests.factories.api import bearer, store_token
from tests.factories.browser_client import browser_client
from tests.factories.mailbox import Mailbox

PASSWORD = "correct horse battery"
NEW = {"name": "Backup", "lifetime": "90", "progress:read": "on", "password": PASSWORD}
PAGE, TOKEN, PROGRESS = "/en/settings/tokens", "/api/v1/token", "/api/v1/progress"


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


@pytest.fixture
async def program(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """A program without cookies."""
    async with browser_client(app) as client:
        yield client


async def rows(app: FastAPI) -> list[ApiToken]:
    async with app.state.db.session() as session:
        return list(await session.scalars(select(ApiToken)))


def shown_token(page: httpx.Response) -> str:
    (token,) = re.findall(r'value="(lockstep_[\w-]{43})"', page.text)
    return str(token)


# --- the settings -----------------------------------------------------------------------------------------------------


async def test_a_token_is_shown_once_and_only_its_hash_is_stored(
    app: FastAPI, ada: httpx.AsyncClient, account: Account, program: httpx.AsyncClient, mailbox: Mailbox
) -> None:
    page = await ada.post(PAGE, data=NEW)

    token = shown_token(page)
    assert page.headers["cache-control"] == "no-store"
    listed = await ada.get(PAGE)
    assert "Backup" in listed.text
    assert "not used yet" in listed.text
    assert token not in listed.text
    (row,) = await rows(app)
    assert token not in "".join(str(getattr(row, column.key)) for column in ApiToken.__table__.columns)
    assert row.expires_at - row.created_at == timedelta(days=90)
    answer = (await program.get(TOKEN, headers=bearer(token))).json()
    assert (answer["name"], answer["scopes"], answer["handle"]) == ("Backup", ["progress:read"], account.handle)
    async with asyncio.timeout(30):
        while not mailbox.to("ada@example.org"):  # noqa: ASYNC110 - the sender is a task beside us
            await asyncio.sleep(0.01)
    (mail,) = mailbox.to("ada@example.org")
    assert mail.subject == "New API token for your Lockstep account"
    assert token not in mail.text


async def test_the_form_suggests_ninety_days_and_offers_a_year_at_most(ada: httpx.AsyncClient) -> None:
    page = (await ada.get(PAGE)).text

    assert re.findall(r'<option value="(\d+)"( selected)?', page) == [
        ("7", ""),
        ("30", ""),
        ("90", " selected"),
        ("180", ""),
        ("365", ""),
    ]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"name": " "}, "Enter a name"),
        ({"progress:read": ""}, "Choose what the token may read."),
        ({"progress:read": "", "everything": "on"}, "Choose what the token may read."),
        ({"lifetime": "366"}, "Choose how long the token works from the list."),
        ({"lifetime": "9" * 30}, "Choose how long the token works from the list."),
        ({"password": "a guess"}, "Incorrect password"),
    ],
)
async def test_what_cannot_be_is_refused_beside_its_field(
    app: FastAPI, ada: httpx.AsyncClient, changes: dict[str, str], sentence: str
) -> None:
    refused = await ada.post(PAGE, data={**NEW, **changes})

    assert refused.status_code == 422
    assert sentence in refused.text
    assert await rows(app) == []


async def test_without_a_password_only_a_recent_sign_in_creates_a_token(app: FastAPI) -> None:
    async with aclosing(await signed_in_browser(app)) as client:
        async with app.state.db.writing() as session:
            await session.execute(update(AuthSession).values(created_at=now() - REAUTHENTICATE_AFTER))
        refused = await client.post(PAGE, data=NEW)
    assert (refused.status_code, await rows(app)) == (422, [])
    assert "You signed in a while ago." in refused.text


async def test_there_is_a_limit_to_the_tokens_of_an_account(
    app: FastAPI, ada: httpx.AsyncClient, account: Account
) -> None:
    for _ in range(MAX_TOKENS):
        await store_token(app.state.db, account)

    refused = await ada.post(PAGE, data=NEW)

    assert refused.status_code == 409
    assert f"You have {MAX_TOKENS} tokens" in refused.text
    assert len(await rows(app)) == MAX_TOKENS


async def test_a_revoked_token_is_refused_and_nobody_revokes_anothers(
    app: FastAPI, ada: httpx.AsyncClient, account: Account, program: httpx.AsyncClient
) -> None:
    token = await store_token(app.state.db, account)
    (row,) = await rows(app)
    async with aclosing(await signed_in_browser(app)) as other:
        assert (await other.post(f"{PAGE}/{row.public_id}/revoke")).status_code == 303
    assert (await program.get(TOKEN, headers=bearer(token))).status_code == 200

    await ada.post(f"{PAGE}/{row.public_id}/revoke")

    assert "The token was revoked." in (await ada.get(PAGE)).text
    assert (await program.get(TOKEN, headers=bearer(token))).status_code == 401


async def test_a_name_is_shown_as_text(app: FastAPI, ada: httpx.AsyncClient) -> None:
    made = await ada.post(PAGE, data={**NEW, "name": "<script>alert(1)</script>"})

    assert "<script>alert" not in made.text
    assert "<script>alert" not in (await ada.get(PAGE)).text
    assert len(await rows(app)) == 1


# --- who is let in ----------------------------------------------------------------------------------------------------


async def test_only_the_header_counts_and_no_cookie(
    app: FastAPI, ada: httpx.AsyncClient, account: Account, program: httpx.AsyncClient
) -> None:
    token = await store_token(app.state.db, account)

    assert (await ada.get(TOKEN)).status_code == 401, "a signed-in browser"
    for name in ("access_token", "token", "authorization"):
        assert (await program.get(TOKEN, params={name: token})).status_code == 401, name
    assert (await program.get(f"{TOKEN}/{token}")).status_code == 404
    assert (await program.get(TOKEN, headers={"cookie": f"lockstep_sign_in={token}"})).status_code == 401
    answer = await program.get(TOKEN, headers=bearer(token))
    assert answer.status_code == 200
    assert "set-cookie" not in answer.headers
    assert answer.headers["cache-control"] == "no-store"
    assert "access-control-allow-origin" not in answer.headers


async def test_a_wrong_token_is_refused_in_the_same_words_as_any_other(
    app: FastAPI, account: Account, program: httpx.AsyncClient
) -> None:
    token = await store_token(app.state.db, account)
    expired = await store_token(app.state.db, account, lifetime=timedelta(0))
    (hashed, *_) = [row.token_hash for row in await rows(app)]
    other = "lockstep_" + secrets.token_urlsafe(32)
    wrong = [expired, other, token[:-1], token + "x", token + "=", token[:30], token.upper(), "lockstep_", "%", hashed]

    answers = [await program.get(TOKEN, headers=bearer(each)) for each in wrong]

    assert {answer.status_code for answer in answers} == {401}
    assert {answer.headers["www-authenticate"] for answer in answers} == {'Bearer error="invalid_token"'}
    assert len({answer.json()["detail"] for answer in answers}) == 1


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("authorization", "")],
        [("authorization", "Bearer")],
        [("authorization", "Basic YTpi")],
        [("authorization", "Bearer one"), ("authorization", "Bearer two")],
    ],
)
async def test_without_a_token_a_program_learns_that_it_needs_one(
    program: httpx.AsyncClient, headers: list[tuple[str, str]]
) -> None:
    answer = await program.get(TOKEN, headers=headers)

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert answer.headers["content-type"] == "application/problem+json"


async def test_a_token_reads_only_what_its_scopes_name(
    app: FastAPI, account: Account, program: httpx.AsyncClient
) -> None:
    token = await store_token(app.state.db, account, scopes=())
    async with app.state.db.writing() as session:  # as an operator who edits the table might
        await session.execute(update(ApiToken).values(scopes="progress:reader admin progress:read2 progress"))

    refused = await program.get(PROGRESS, headers=bearer(token))

    assert refused.status_code == 403
    assert refused.headers["www-authenticate"] == 'Bearer error="insufficient_scope", scope="progress:read"'
    assert "progress:read" in refused.json()["detail"]
    assert (await program.get(TOKEN, headers=bearer(token))).json()["scopes"] == []


async def test_nothing_can_be_changed(app: FastAPI, account: Account, program: httpx.AsyncClient) -> None:
    token = await store_token(app.state.db, account)

    for method in ("POST", "PUT", "PATCH", "DELETE"):
        answer = await program.request(method, TOKEN, headers=bearer(token))
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")
    assert (await program.get("/en/settings", headers=bearer(token))).status_code == 401, "a page"


async def test_an_account_that_is_disabled_or_deleted_takes_its_tokens_with_it(
    app: FastAPI, ada: httpx.AsyncClient, account: Account, program: httpx.AsyncClient
) -> None:
    other = await store_account(app.state.db)
    tokens = [await store_token(app.state.db, each) for each in (account, other)]
    async with app.state.db.writing() as session:
        await session.execute(update(Account).where(Account.id == other.id).values(disabled_at=now()))
    assert (await program.get(TOKEN, headers=bearer(tokens[1]))).status_code == 401
    assert len(await rows(app)) == 2

    await ada.post("/en/settings/data/delete", data={"password": PASSWORD})

    assert (await program.get(TOKEN, headers=bearer(tokens[0]))).status_code == 401
    assert [row.account_id for row in await rows(app)] == [other.id]


async def test_disabling_an_account_and_a_new_password_revoke_its_tokens(
    app: FastAPI, ada: httpx.AsyncClient, account: Account, program: httpx.AsyncClient
) -> None:
    token = await store_token(app.state.db, account)
    await ada.post("/en/settings/security/sessions", data={"which": "others", "sign_ins_password": PASSWORD})
    assert (await program.get(TOKEN, headers=bearer(token))).status_code == 200, "only browsers were signed out"

    await ada.post("/en/settings/security/password", data={"password": PASSWORD, "new_password": "another good one"})

    assert (await program.get(TOKEN, headers=bearer(token))).status_code == 401
    await store_token(app.state.db, account)
    async with app.state.db.writing() as session:
        await disable_account(session, Actor.of_command(), account)
    assert await rows(app) == []


async def test_too_many_requests_are_told_when_to_go_on(
    app: FastAPI, account: Account, program: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_access, "REQUESTS_PER_WINDOW", 2)
    at = 0.0
    api_access.API_BUDGET.set(app, api_access.ApiBudget(lambda: at))
    token, other = [await store_token(app.state.db, account) for _ in range(2)]

    answers = [await program.get(TOKEN, headers=bearer(token)) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert answers[2].headers["retry-after"] == "60"
    assert (await program.get(TOKEN, headers=bearer(other))).status_code == 200, "another token"
    at = 60.0
    assert (await program.get(TOKEN, headers=bearer(token))).status_code == 200


# --- what is kept -----------------------------------------------------------------------------------------------------


async def test_the_day_of_the_last_use_is_kept_and_not_the_time(
    app: FastAPI, ada: httpx.AsyncClient, account: Account, program: httpx.AsyncClient
) -> None:
    token = await store_token(app.state.db, account)

    await program.get(TOKEN, headers=bearer(token))

    (row,) = await rows(app)
    assert row.last_used_at is not None
    assert (row.last_used_at.hour, row.last_used_at.minute, row.last_used_at.second) == (0, 0, 0)
    assert now() - row.last_used_at < timedelta(days=1, minutes=1)
    assert "not used yet" not in (await ada.get(PAGE)).text


async def test_expired_tokens_are_listed_for_a_week_then_deleted(
    app: FastAPI, ada: httpx.AsyncClient, account: Account
) -> None:
    await store_token(app.state.db, account, lifetime=timedelta(0))
    await clean_up(app.state.db)
    assert '<span class="chip">expired</span>' in (await ada.get(PAGE)).text

    async with app.state.db.writing() as session:
        await session.execute(update(ApiToken).values(expires_at=now() - timedelta(days=8)))
    await clean_up(app.state.db)

    assert await rows(app) == []


async def test_the_download_lists_tokens_without_their_hashes(
    app: FastAPI, ada: httpx.AsyncClient, account: Account
) -> None:
    token = await store_token(app.state.db, account)
    (row,) = await rows(app)

    text = (await ada.get("/en/settings/data/export")).text

    (listed,) = [each for each in json.loads(text)["account"] if each["kind"] == "api_token"]
    assert (listed["name"], listed["scopes"]) == ("A program", " ".join(TokenScope))
    assert token not in text
    assert row.token_hash not in text


async def test_no_log_has_a_token(
    app: FastAPI,
    settings: Settings,
    ada: httpx.AsyncClient,
    program: httpx.AsyncClient,
    capfd: pytest.CaptureFixture[str],
) -> None:
    configure_logging(settings.model_copy(update={"log_level": "debug", "log_format": "json"}))

    token = shown_token(await ada.post(PAGE, data=NEW))
    for headers in (bearer(token), bearer(token + "x"), {}):
        await program.get(TOKEN, headers=headers, params={"access_token": token})
    for path in (f"{TOKEN}/{token}", f"/{token}.", f"/en/{token}/x"):
        await program.get(path)
    await ada.post(f"{PAGE}/{(await rows(app))[0].public_id}/revoke")

    log = capfd.readouterr().err
    assert token.removeprefix("lockstep_") not in log
    events = [json.loads(line) for line in log.splitlines()]
    assert [(event["event"], event.get("reason")) for event in events if event["event"].startswith("api_token")] == [
        ("api_token_created", "progress:read"),
        ("api_token_refused", "not valid"),
        ("api_token_revoked", None),
    ]


# --- the site's switches and rules ------------------------------------------------------------------------------------


async def test_during_maintenance_programs_read_and_no_token_is_made(
    app: FastAPI, ada: httpx.AsyncClient, account: Account, program: httpx.AsyncClient
) -> None:
    token = await store_token(app.state.db, account)
    async with app.state.db.writing() as session:
        await turn(session, Switch.maintenance, on=True)
    await SWITCHES.get(app).refresh(app.state.db)

    assert (await ada.post(PAGE, data=NEW)).status_code == 503
    assert (await program.get(PROGRESS, headers=bearer(token))).status_code == 200
    refused = await program.post(PROGRESS, headers=bearer(token))
    assert (refused.status_code, refused.headers["content-type"]) == (503, "application/problem+json")
