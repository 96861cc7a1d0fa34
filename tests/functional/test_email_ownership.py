"""An address belongs to its owner: what somebody else typed blocks nobody, whoever is quicker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import func, select, update

from app.accounts.emails import AccountMailer
from app.accounts.merge import merge_visitor
from app.accounts.models import Account
from app.accounts.personal_data import erase_account
from app.accounts.service import AccountDeleted, create_account, find_by_email, lock_account
from app.accounts.sign_up import SignUpRequest, sign_up
from app.db import Database, now
from app.main import FEATURES, create_app
from app.runs.models import Run
from app.runs.personal_data import move_runs
from app.settings import Settings
from tests.factories.accounts import signed_in_browser, store_account
from tests.factories.mailbox import Mailbox
from tests.factories.stored_runs import store_runs

ADDRESS, PASSWORD = "ada@example.org", "correct horse battery"
SQUATTER = {"name": "You won! evil.example", "email": ADDRESS, "password": "a squatter's password"}


@pytest.fixture
def mailbox(monkeypatch: pytest.MonkeyPatch) -> Mailbox:
    return Mailbox(monkeypatch)


@pytest.fixture
async def bob(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """A browser of somebody who has an account with another address."""
    async with await signed_in_browser(
        app, await store_account(app.state.db, name="Bob", email="bob@example.com")
    ) as client:
        yield client


async def link_to(mailbox: Mailbox, address: str, subject: str) -> str:
    async with asyncio.timeout(10):
        while not [mail for mail in mailbox.to(address) if subject in mail.subject]:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return mailbox.link(address)


async def accounts(db: Database) -> list[Account]:
    async with db.session() as session:
        return list(await session.scalars(select(Account)))


async def test_the_owner_of_an_address_takes_over_an_account_that_was_never_opened(
    app: FastAPI, stranger: httpx.AsyncClient, bob: httpx.AsyncClient, mailbox: Mailbox
) -> None:
    await stranger.post("/en/sign-up", data=SQUATTER)
    squatters = await link_to(mailbox, ADDRESS, "Confirm your email")
    assert (await bob.post("/en/settings/security/email", data={"email": ADDRESS})).status_code == 303
    link = await link_to(mailbox, ADDRESS, "new Lockstep email address")

    assert (await bob.post(link)).status_code == 303

    (account,) = await accounts(app.state.db)
    assert (account.email, account.name) == (ADDRESS, "Bob")
    refused = await stranger.post(squatters, data={"password": SQUATTER["password"]})
    assert refused.status_code == 404


async def test_who_signs_up_after_somebody_typed_their_address_gets_nothing_of_that(
    app: FastAPI, client: httpx.AsyncClient, stranger: httpx.AsyncClient, mailbox: Mailbox
) -> None:
    await stranger.post("/en/sign-up", data=SQUATTER)
    ada = {"name": "Ada Byron", "email": "Ada@example.org", "password": PASSWORD}
    await client.post("/en/sign-up", data=ada)

    (account,) = await accounts(app.state.db)
    assert (account.name, account.handle, account.email) == ("Ada Byron", "ada-byron", "Ada@example.org")


async def test_an_address_that_the_operator_has_shut_out_before_it_was_opened_stays_out(
    app: FastAPI, client: httpx.AsyncClient, mailbox: Mailbox
) -> None:
    await client.post("/en/sign-up", data=SQUATTER)
    link = await link_to(mailbox, ADDRESS, "Confirm your email")
    async with app.state.db.writing() as session:
        await session.execute(update(Account).where(Account.email == ADDRESS).values(disabled_at=now()))

    assert (await client.post("/en/sign-up", data=SQUATTER)).status_code == 200

    assert (await client.post(link, data={"password": SQUATTER["password"]})).status_code == 410
    async with app.state.db.session() as session:
        kept = await find_by_email(session, ADDRESS)
    assert kept is not None
    assert kept.disabled_at is not None
    assert len(mailbox.to(ADDRESS)) == 1


async def test_a_link_for_a_new_password_says_nothing_that_a_stranger_typed(
    stranger: httpx.AsyncClient, mailbox: Mailbox
) -> None:
    await stranger.post("/en/sign-up", data=SQUATTER)
    await stranger.post("/en/password-reset", data={"email": ADDRESS})
    await link_to(mailbox, ADDRESS, "Reset your Lockstep password")

    mail = mailbox.to(ADDRESS)[-1]
    assert "evil.example" not in mail.subject + mail.text + mail.html
    assert "Hello,\n" in mail.text


async def test_a_new_address_is_confirmed_only_by_somebody_signed_in_to_the_account(
    app: FastAPI, bob: httpx.AsyncClient, stranger: httpx.AsyncClient, mailbox: Mailbox
) -> None:
    """Whoever receives the email for a typo could request a new password next."""
    await bob.post("/en/settings/security/email", data={"email": "slip@example.org"})
    link = await link_to(mailbox, "slip@example.org", "new Lockstep email address")

    led = await stranger.get(link, headers={"accept": "text/html"})
    assert led.headers["location"] == f"/en/sign-in?next={link.replace('/', '%2F')}"
    assert (await stranger.post(link)).status_code == 401
    async with await signed_in_browser(app) as other:
        assert (await other.get(link)).status_code == 403
        assert (await other.post(link)).status_code == 403
    async with app.state.db.session() as session:
        assert await find_by_email(session, "bob@example.com") is not None
    assert (await bob.get(link)).status_code == 200
    assert (await bob.post(link)).status_code == 303


async def test_who_signs_up_while_the_owner_opens_the_account_changes_nothing_of_it(
    database: Database, settings: Settings
) -> None:
    mailer = AccountMailer(create_app(settings).url_path_for, "http://test")
    eve = SignUpRequest(ADDRESS, "Eve", "en", "UTC")

    async def by_eve() -> None:
        async with database.writing() as session:
            await sign_up(session, eve, "the hash of a password of Eve's", None, mailer)

    async with database.writing() as session:
        await create_account(session, email=ADDRESS, name="Ada", password_hash="of Ada's")
    async with database.writing() as session:
        account = await find_by_email(session, ADDRESS)
        assert account is not None
        account = await lock_account(session, account)
        account.email_confirmed_at = now()
        await session.flush()
        meanwhile = asyncio.create_task(by_eve())
        await asyncio.sleep(0.3)
    await meanwhile

    (account,) = await accounts(database)
    assert (account.name, account.password_hash) == ("Ada", "of Ada's")


@pytest.mark.parametrize("deleted_first", [True, False])
async def test_what_comes_into_an_account_while_it_is_deleted_goes_with_it(
    database: Database, *, deleted_first: bool
) -> None:
    account = await store_account(database)
    await store_runs(database, "a visitor", 3)
    first_has_written = asyncio.Event()

    async def delete_it() -> None:
        async with database.writing() as session:
            erasers = [eraser for feature in FEATURES for eraser in feature.erasers]
            await erase_account(session, account, erasers)
            first_has_written.set()
            await asyncio.sleep(0.3)

    async def come_in() -> None:
        async with database.writing() as session:
            mine = await lock_account(session, account)
            await merge_visitor(session, "a visitor", mine, (move_runs,))
            first_has_written.set()
            await asyncio.sleep(0.3)

    first, second = (delete_it, come_in) if deleted_first else (come_in, delete_it)
    one = asyncio.create_task(first())
    await asyncio.wait_for(first_has_written.wait(), 60)
    two = asyncio.create_task(second())
    problems = [e for e in await asyncio.gather(one, two, return_exceptions=True) if e is not None]

    assert [type(e) for e in problems] == ([AccountDeleted] if deleted_first else [])
    async with database.session() as session:
        orphans = select(func.count()).where(Run.learner_id == account.learner_id)
        assert await session.scalar(orphans) == 0
