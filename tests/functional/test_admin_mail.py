"""The admin page of emails: what waits or failed, sending at once, discarding, and a test with its error in words."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from datetime import timedelta
from socket import gaierror
from typing import Any

import aiosmtplib
import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import select

from app.accounts.models import Account, Role
from app.admin.mail import explain_failure
from app.admin.models import AuditEntry
from app.db import Database, now
from app.mail import worker
from app.mail.models import EmailState, OutboxEmail
from app.mail.transport import DeliveryUncertain, SendFailed
from app.main import create_app
from app.settings import Settings
from tests.factories.accounts import signed_in_browser, store_account
from tests.factories.browser_client import browser_client
from tests.factories.http_server import free_port
from tests.factories.mailbox import Mailbox
from tests.factories.smtp_server import SmtpMailbox, serve_smtp

PAGE = "/en/admin/mail"


@pytest.fixture
def settings(settings: Settings, database: Database) -> Settings:
    url = database.engine.url.render_as_string(hide_password=False)
    return settings.model_copy(update={"database_url": url})


@pytest.fixture
async def admin(app: FastAPI) -> Account:
    return await store_account(app.state.db, Role.admin)


@pytest.fixture
async def browser(app: FastAPI, admin: Account) -> AsyncIterator[httpx.AsyncClient]:
    async with await signed_in_browser(app, admin) as browser:
        yield browser


async def store_email(app: FastAPI, state: EmailState = EmailState.waiting, **values: Any) -> str:
    """Store an email that is due in an hour."""
    email: dict[str, Any] = {"id": f"{state}-{values.pop('number', 0)}", "recipient": f"{state}@example.org"}
    email |= {"subject": f"About {state}", "text": "/secret-link", "html": "", "state": state}
    email |= {"created_at": now(), "last_error": "451 later"}
    async with app.state.db.writing() as session:
        session.add(OutboxEmail(**{**email, "due_at": now() + timedelta(hours=1), **values}))
    return str(email["id"])


@pytest.fixture
def unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sender does not look by itself. Name it before the application, which starts the sender."""
    monkeypatch.setattr(worker, "_POLL_INTERVAL_S", 3600.0)


async def actions(app: FastAPI) -> list[str]:
    async with app.state.db.session() as session:
        return list(await session.scalars(select(AuditEntry.action).order_by(AuditEntry.id)))


async def states(app: FastAPI) -> set[str]:
    async with app.state.db.session() as session:
        return set(await session.scalars(select(OutboxEmail.state)))


async def test_an_admin_sees_emails_by_state_and_never_their_text(app: FastAPI, browser: httpx.AsyncClient) -> None:
    for state in EmailState:
        await store_email(app, state)
    for state in EmailState:
        page = (await browser.get(PAGE, params={"state": state})).text
        assert f"About {state}" in page
        assert page.count("@example.org</span></th>") == 1
        assert "secret-link" not in page
        assert ("Send now" in page) is (state is EmailState.waiting)
    overview = (await browser.get("/en/admin")).text
    assert ("Waiting 1</a>" in overview, "Failed 1</a>" in overview) == (True, True)


@pytest.mark.usefixtures("unasked")
async def test_a_waiting_email_is_sent_at_once(
    app: FastAPI, browser: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    mailbox = Mailbox(monkeypatch)
    email = await store_email(app)
    assert (await browser.post(PAGE, data={"verb": "retry", "email": email})).status_code == 303
    async with asyncio.timeout(60):
        while not mailbox.to("waiting@example.org"):  # noqa: ASYNC110 - the sender is a task beside us
            await asyncio.sleep(0.01)
    await store_email(app, number=1)
    await store_email(app, number=2)
    assert (await browser.post(PAGE, data={"verb": "retry_all"})).status_code == 303
    async with asyncio.timeout(60):
        while len(mailbox.to("waiting@example.org")) < 3:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert await actions(app) == ["email_retried", "emails_retried"]


async def test_only_an_email_that_waits_is_sent_and_one_being_sent_is_not_discarded(
    app: FastAPI, browser: httpx.AsyncClient
) -> None:
    for state in (EmailState.failed, EmailState.sending, EmailState.unconfirmed):
        email = await store_email(app, state)
        assert (await browser.post(PAGE, data={"verb": "retry", "email": email})).status_code == 409
        status = (await browser.post(PAGE, data={"verb": "discard", "email": email})).status_code
        assert status == (409 if state is EmailState.sending else 303)
    assert await states(app) == {"sending"}
    assert await actions(app) == ["email_discarded"] * 2
    for form, status in (({"verb": "retry", "email": "none"}, 409), ({"verb": "read"}, 422), ({}, 422)):
        assert (await browser.post(PAGE, data=form)).status_code == status


@pytest.mark.parametrize("role", [None, Role.learner, Role.instructor])
async def test_nobody_else_sees_or_touches_emails(app: FastAPI, role: Role | None) -> None:
    email = await store_email(app)
    async with await signed_in_browser(app, role) if role else browser_client(app) as client:
        for answer in (
            await client.get(PAGE),
            await client.post(PAGE, data={"verb": "discard", "email": email}),
            await client.post(f"{PAGE}/test"),
        ):
            assert answer.status_code == (403 if role else 401)
    assert await states(app) == {"waiting"}


async def test_a_test_needs_a_mail_server(browser: httpx.AsyncClient) -> None:
    assert "LOCKSTEP_SMTP_URL is empty" in (await browser.post(f"{PAGE}/test")).text
    assert (await browser.post(f"{PAGE}/test", headers={"sec-fetch-site": "cross-site"})).status_code == 403


async def test_a_test_email_arrives_or_the_page_says_why_not(settings: Settings) -> None:
    sender = {"mail_from": "Lockstep <learn@example.org>", "public_url": "http://test"}
    postbox = SmtpMailbox()
    with serve_smtp(postbox) as address:
        for url, words in (
            (f"smtp://{address}?tls=off", "accepted the test email"),
            (f"smtp://{address}", "does not offer STARTTLS"),
            (f"smtps://{address}", "secure connection could not be set up"),
            (f"smtp://127.0.0.1:{free_port()}?tls=off", "cannot be reached"),
        ):
            app = create_app(settings.model_copy(update={**sender, "smtp_url": url}))
            async with app.router.lifespan_context(app):
                admin = await store_account(app.state.db, Role.admin)
                async with await signed_in_browser(app, admin) as browser:
                    answer = await browser.post(f"{PAGE}/test", follow_redirects=True)
                    assert (answer.status_code, words in answer.text) == (200 if "accepted" in words else 409, True), (
                        url
                    )
    assert len(postbox.mails) == 1
    assert postbox.mails[0]["Subject"] == "A test email from Lockstep"


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (aiosmtplib.SMTPAuthenticationError(535, "no"), "user name and password"),
        (aiosmtplib.SMTPSenderRefused(550, "no", "a"), "LOCKSTEP_MAIL_FROM"),
        (aiosmtplib.SMTPRecipientRefused(550, "no", "a"), "address of your account"),
        (aiosmtplib.SMTPConnectTimeoutError("slow"), "in time"),
        (TimeoutError(), "in time"),
        (gaierror(-2, "unknown"), "host name"),
        (ssl.SSLCertVerificationError("self-signed"), "certificate"),
        (ConnectionRefusedError(), "cannot be reached"),
        (aiosmtplib.SMTPDataError(554, "spam"), "refused it"),
    ],
)
def test_every_failure_is_said_in_words(cause: Exception, words: str) -> None:
    error = SendFailed("it failed")
    error.__cause__ = cause
    assert words in explain_failure(error)
    assert "may still arrive" in explain_failure(DeliveryUncertain("broke"))
