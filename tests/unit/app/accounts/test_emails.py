"""A waiting email is not sent if its reader has been deleted, disabled, or has changed the address."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from app.accounts.email_links import LinkPurpose, revoke_links
from app.accounts.emails import AccountMailer, should_send
from app.accounts.models import Account
from app.accounts.personal_data import erase_account
from app.accounts.service import lock_account
from app.accounts.validation import email_key
from app.bus import Bus
from app.db import Database, now
from app.mail.models import OutboxEmail
from app.mail.worker import OutboxWorker
from app.main import create_app
from app.settings import Settings
from tests.factories.accounts import store_account

OLD, NEW = "ada@example.org", "countess@example.org"


class Sent:
    """A server that accepts every email."""

    def __init__(self) -> None:
        self.mails: list[tuple[str, str]] = []

    async def send(self, mail: OutboxEmail) -> None:
        self.mails.append((mail.recipient, mail.subject))


@pytest.fixture
def mailer(settings: Settings) -> AccountMailer:
    return AccountMailer(create_app(settings).url_path_for, "http://test")


async def write_all(db: Database, mailer: AccountMailer) -> Account:
    """Every email that an account may be waiting for."""
    account = await store_account(db, email=OLD)
    async with db.writing() as session:
        await mailer.send_link(session, account, LinkPurpose.reset, OLD)
        await mailer.send_link(session, account, LinkPurpose.change, NEW)
        await mailer.send_already_registered(session, account)
        await mailer.send_changed(session, account, "password", OLD)
    return account


async def send_all(db: Database) -> list[tuple[str, str]]:
    sent = Sent()
    sender = OutboxWorker(db, Bus(), sent, should_send)
    while await sender.send_one():
        pass
    async with db.session() as session:
        assert (await session.scalars(select(OutboxEmail))).all() == [], "one of them waits on"
    return sent.mails


async def test_who_is_there_gets_every_mail(database: Database, mailer: AccountMailer) -> None:
    await write_all(database, mailer)

    assert [to for to, _subject in await send_all(database)] == [OLD, NEW, OLD, OLD]


async def test_no_email_goes_to_a_deleted_account(database: Database, mailer: AccountMailer) -> None:
    account = await write_all(database, mailer)
    async with database.writing() as session:
        await erase_account(session, account, ())
        assert (await session.scalars(select(OutboxEmail))).all() == [], "an address that nobody needs"

    assert await send_all(database) == []


async def test_no_email_goes_to_a_disabled_account(database: Database, mailer: AccountMailer) -> None:
    account = await write_all(database, mailer)
    async with database.writing() as session:
        (await lock_account(session, account)).disabled_at = now()

    assert await send_all(database) == []


@pytest.mark.parametrize("deleted", [False, True])
async def test_an_address_that_was_left_gets_only_the_news_that_it_was(
    database: Database, mailer: AccountMailer, *, deleted: bool
) -> None:
    account = await write_all(database, mailer)
    async with database.writing() as session:
        mine = await lock_account(session, account)
        await mailer.send_changed(session, mine, "address", OLD)
        mine.email, mine.email_key = NEW, email_key(NEW)
        await revoke_links(session, mine)
        await mailer.send_changed(session, mine, "password", NEW)
    if deleted:
        async with database.writing() as session:
            await erase_account(session, account, ())

    sent = await send_all(database)

    assert [subject for to, subject in sent if to == OLD] == ["Your Lockstep email address was changed"]
    assert [to for to, _subject in sent].count(NEW) == (0 if deleted else 2)
