"""Emails: their content, that each is sent once, and what happens to those that cannot be sent."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

import pytest
from sqlalchemy import select, update

from app.accounts.emails import should_send
from app.accounts.models import Account
from app.bus import Bus
from app.db import Database, now
from app.mail import outbox
from app.mail.models import EmailState, OutboxEmail
from app.mail.renderer import TemplatedEmail, render_email
from app.mail.transport import SmtpServer, SmtpTransport, Transport
from app.mail.worker import OutboxWorker
from tests.factories.accounts import store_account
from tests.factories.smtp_server import PASSWORD, USER, SmtpMailbox, make_certificate, serve_smtp

SENDER = "Lockstep <learn@example.org>"
URL = "https://learn.example.org/en/email-link/abc"
VALUES = {"name": "Ada <b>", "email": "ada@example.org", "url": URL, "reset_url": URL, "auth_methods": ["Ada <b>"]}
VALUES["security_url"] = URL
LETTERS = [
    path.name for path in sorted((Path(__file__).parents[4] / "app/accounts/templates/accounts/mail").glob("*.html"))
]
SCRIPTS = {"en": "[A-Za-z]", "ko": "[가-힣]", "zh": "[一-鿿]"}


def a_mail(to: str = "ada@example.org", language: str = "en", unsubscribe_url: str = "") -> TemplatedEmail:
    return TemplatedEmail(to, language, "accounts/mail/reset.html", VALUES, unsubscribe_url=unsubscribe_url)


async def post(db: Database, *mails: TemplatedEmail) -> None:
    async with db.writing() as session:
        for mail in mails:
            await outbox.enqueue(session, mail)


async def send_all(db: Database, transport: Transport) -> None:
    sender = OutboxWorker(db, Bus(), transport, should_send)
    while await sender.send_one():
        pass


async def kept(db: Database) -> list[OutboxEmail]:
    async with db.session() as session:
        return list(await session.scalars(select(OutboxEmail).order_by(OutboxEmail.created_at)))


def plain(address: str) -> SmtpTransport:
    return SmtpTransport(SmtpServer.from_url(f"smtp://{address}?tls=off"), SENDER)


@pytest.mark.parametrize("language", SCRIPTS)
@pytest.mark.parametrize("name", LETTERS)
def test_a_letter_says_the_same_as_text_and_as_html(name: str, language: str) -> None:
    letter = render_email(TemplatedEmail("ada@example.org", language, f"accounts/mail/{name}", VALUES))

    assert re.search(SCRIPTS[language], letter.subject)
    assert re.search(SCRIPTS[language], letter.text)
    assert f'<html lang="{language}">' in letter.html
    assert "<" not in letter.text.replace("Ada <b>", "")
    assert "Ada <b>" not in letter.html
    if URL in letter.html:
        assert re.search(rf"^{URL}$", letter.text, re.MULTILINE), "the address is on a separate line"


async def test_a_real_server_gets_text_and_html_in_each_language(database: Database) -> None:
    postbox = SmtpMailbox()
    with serve_smtp(postbox) as address:
        await post(database, *(a_mail(f"{code}@example.org", code, "https://x.test/u?t=1") for code in SCRIPTS))
        await send_all(database, plain(address))

    assert sorted(postbox.recipients) == ["en@example.org", "ko@example.org", "zh@example.org"]
    for mail in postbox.mails:
        code = mail["to"].partition("@")[0]
        text, html = mail.get_body(("plain",)), mail.get_body(("html",))
        assert text is not None
        assert html is not None
        assert re.search(SCRIPTS[code], mail["subject"])
        assert URL in text.get_content()
        assert f'lang="{code}"' in html.get_content()
        assert mail["from"] == SENDER
        assert mail["auto-submitted"] == "auto-generated"
        assert mail["list-unsubscribe"] == "<https://x.test/u?t=1>"
        assert mail["list-unsubscribe-post"] == "List-Unsubscribe=One-Click"
        assert mail["message-id"].endswith("@example.org>")
    assert await kept(database) == [], "what was sent is not kept"


async def test_a_password_goes_out_only_under_tls(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, trusted = make_certificate(tmp_path)
    postbox = SmtpMailbox()
    with serve_smtp(postbox, context) as address:
        server = SmtpServer.from_url(f"smtp://{USER}:{quote(PASSWORD)}@{address}")
        await post(database, a_mail())
        await send_all(database, SmtpTransport(server, SENDER))
        assert postbox.mails == [], "a server that nobody vouches for got a mail"
        (waiting,) = await kept(database)
        assert "certificate" in waiting.last_error.lower()
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        async with database.writing() as session:
            await session.execute(update(OutboxEmail).values(due_at=now()))
        await send_all(database, SmtpTransport(server, SENDER))
    assert postbox.encrypted == [True]


async def test_a_server_without_starttls_gets_nothing(database: Database) -> None:
    postbox = SmtpMailbox()
    with serve_smtp(postbox) as address:
        await post(database, a_mail())
        await send_all(database, SmtpTransport(SmtpServer.from_url(f"smtp://{address}"), SENDER))
    assert postbox.mails == []
    assert (await kept(database))[0].state == EmailState.waiting


async def test_a_server_that_is_away_is_tried_again_later(database: Database) -> None:
    await post(database, a_mail())
    await send_all(database, plain("127.0.0.1:9"))

    (waiting,) = await kept(database)

    assert (waiting.state, waiting.attempts) == (EmailState.waiting, 1)
    assert timedelta(seconds=20) < waiting.due_at - now() < timedelta(seconds=31)


@pytest.mark.parametrize(("answer", "state"), [("451 later", EmailState.waiting), ("554 never", EmailState.failed)])
async def test_what_the_server_answers_decides_whether_it_is_tried_again(
    database: Database, answer: str, state: EmailState
) -> None:
    postbox = SmtpMailbox(answer)
    with serve_smtp(postbox) as address:
        await post(database, a_mail())
        await send_all(database, plain(address))
    (mail,) = await kept(database)
    assert mail.state == state
    assert answer[4:] in mail.last_error
    assert bool(mail.text) is (state is EmailState.waiting), "a link is not kept for nothing"


async def test_a_mail_that_may_have_arrived_is_not_sent_again(database: Database) -> None:
    async def cut_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 here\r\n")
        while line := await reader.readline():
            if line.upper().startswith(b"DATA"):
                writer.write(b"354 go on\r\n")
                await reader.readuntil(b"\r\n.\r\n")
                break
            writer.write(b"250 yes\r\n")
        writer.close()

    server = await asyncio.start_server(cut_off, "127.0.0.1", 0)
    async with server:
        await post(database, a_mail())
        await send_all(database, plain(f"127.0.0.1:{server.sockets[0].getsockname()[1]}"))
    (mail,) = await kept(database)
    assert mail.state == EmailState.unconfirmed


async def test_many_senders_send_each_mail_once(database: Database) -> None:
    sent: list[str] = []

    class Slow:
        async def send(self, mail: OutboxEmail) -> None:
            await asyncio.sleep(0.01)
            sent.append(mail.recipient)

    await post(database, *(a_mail(f"{n}@example.org") for n in range(20)))
    await asyncio.gather(*(send_all(database, Slow()) for _ in range(5)))

    assert sorted(sent) == sorted(f"{n}@example.org" for n in range(20))


async def test_a_server_that_takes_its_time_does_not_keep_us_from_ending(database: Database) -> None:
    asked = asyncio.Event()

    class Endless:
        async def send(self, mail: OutboxEmail) -> None:
            asked.set()
            await asyncio.Event().wait()

    await post(database, a_mail())
    bus = Bus()
    sender = OutboxWorker(database, bus, Endless(), should_send)
    sending = asyncio.create_task(sender.run())
    await asked.wait()
    bus.close()
    sender.cancel_delivery()
    await asyncio.wait_for(sending, 10)
    assert [mail.state for mail in await kept(database)] == [EmailState.unconfirmed]


async def test_a_mail_that_cannot_be_written_holds_up_no_other(database: Database) -> None:
    postbox = SmtpMailbox()
    with serve_smtp(postbox) as address:
        await post(database, a_mail("no address"), a_mail())
        await send_all(database, plain(address))
    assert postbox.recipients == ["ada@example.org"]
    assert [mail.state for mail in await kept(database)] == [EmailState.failed]


async def test_what_a_disabled_account_wrote_is_not_sent(database: Database) -> None:
    ada, grace, tess = [await store_account(database, name=name) for name in ("Ada", "Grace", "Tess")]
    written = [replace(a_mail(ada.email), account_id=ada.id, sender_id=sender.id) for sender in (grace, tess)]
    await post(database, *written)
    async with database.writing() as session:
        await session.execute(update(Account).where(Account.id == grace.id).values(disabled_at=now()))

    postbox = SmtpMailbox()
    with serve_smtp(postbox) as address:
        await send_all(database, plain(address))

    assert postbox.recipients == [ada.email], "only what Tess wrote"
    assert not await kept(database)


async def test_the_mail_of_a_sender_that_was_killed_is_doubted_not_sent(database: Database) -> None:
    await post(database, a_mail())
    assert await outbox.claim(database) is not None
    assert await outbox.mark_abandoned_unconfirmed(database) == 0
    async with database.writing() as session:
        await session.execute(update(OutboxEmail).values(due_at=now() - timedelta(hours=1)))

    assert await outbox.mark_abandoned_unconfirmed(database) == 1

    assert await outbox.claim(database) is None


def test_pauses_grow_and_end_within_two_days() -> None:
    pauses = [pause for tries in range(1, 20) if (pause := outbox.retry_delay_s(tries)) is not None]
    assert pauses == sorted(pauses)
    assert sum(pauses) < 2 * 24 * 3600
    assert outbox.retry_delay_s(len(pauses) + 1) is None


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("smtp://u:p%40w@mail.test", SmtpServer("mail.test", 587, "u", "p@w", "start")),
        ("smtps://mail.test", SmtpServer("mail.test", 465, None, None, "always")),
        ("smtp://mail.test:25?tls=off", SmtpServer("mail.test", 25, None, None, "off")),
    ],
)
def test_the_setting_names_a_server(url: str, server: SmtpServer) -> None:
    assert SmtpServer.from_url(url) == server


async def test_what_was_given_up_is_forgotten_after_a_month(database: Database) -> None:
    await post(database, *(a_mail(f"{state}@example.org") for state in EmailState))
    async with database.writing() as session:
        for state in EmailState:
            mine = update(OutboxEmail).where(OutboxEmail.recipient == f"{state}@example.org")
            await session.execute(mine.values(state=state, due_at=now() - timedelta(days=29)))
    await outbox.delete_expired(database)
    assert len(await kept(database)) == len(EmailState)
    async with database.writing() as session:
        await session.execute(update(OutboxEmail).values(due_at=now() - timedelta(days=31)))
    await outbox.delete_expired(database)
    assert {mail.state for mail in await kept(database)} == {EmailState.waiting, EmailState.sending}
