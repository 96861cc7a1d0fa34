"""Emails about notifications: at once or once a day, in the reader's language, never twice, on both databases."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app import i18n
from app.accounts.emails import should_send
from app.accounts.models import Account, EmailFrequency
from app.accounts.personal_data import erase_account
from app.bus import Bus
from app.comments import editing, moderation
from app.comments.editing import CommentDraft
from app.comments.notification_content import CommentDescriber
from app.db import Database, now
from app.lessons.catalog import Catalog
from app.mail.models import OutboxEmail
from app.mail.outbox import claim, reschedule
from app.mail.transport import SmtpServer, SmtpTransport
from app.mail.worker import OutboxWorker
from app.notifications import service
from app.notifications.mailer import NotificationMailer, _pending, latest_digest_time
from app.notifications.models import Notification, NotificationKind
from app.notifications.unsubscribe_links import UnsubscribeTokens
from app.notifications.views import NotificationContent
from tests.factories.accounts import store_account
from tests.factories.smtp_server import SmtpMailbox, serve_smtp

BASE = "https://learn.example.org"
SCRIPTS = {"en": "[A-Za-z]{3}", "ko": "[가-힣]{2}", "zh": "[一-鿿]{2}"}
OURS = UnsubscribeTokens(b"k" * 32)
GONE = "gone"


async def said(_session: AsyncSession, _account: Account, subjects: Sequence[str]) -> Mapping[str, NotificationContent]:
    """All comments but one are visible."""
    title = {"en": "A lesson", "ko": "수업", "zh": "课程"}[i18n.current_language()]
    there = [subject for subject in subjects if subject != GONE]
    return {
        subject: NotificationContent(title, f"About {subject}", "comment", {"id": subject}, f"#c-{subject}")
        for subject in there
    }


def path(route: str, **parts: str) -> str:
    return f"/{parts.pop('lang')}/{route}" + "".join(f"/{part}" for part in parts.values())


def mailer(db: Database) -> NotificationMailer:
    return NotificationMailer(db, Bus(), OURS, dict.fromkeys(NotificationKind, said), path, BASE)


async def somebody(db: Database, language: str = "en", **values: object) -> Account:
    account = await store_account(db, name="Ada Byron", email=f"{language}@example.org")
    async with db.writing() as session:
        mine = await session.get_one(Account, account.id)
        mine.language = language
        for name, value in values.items():
            setattr(mine, name, value)
    return mine


async def tell(
    db: Database,
    account: Account,
    subject: str,
    at: datetime | None = None,
    *,
    kind: NotificationKind = NotificationKind.reply,
    actor_id: str | None = None,
) -> None:
    async with db.writing() as session:
        await service.notify(session, [account.id], kind, subject, actor_id)
        if at is not None:
            mine = update(Notification).where(Notification.subject == subject, Notification.account_id == account.id)
            await session.execute(mine.values(created_at=at))


async def outbox(db: Database) -> list[OutboxEmail]:
    async with db.session() as session:
        return list(await session.scalars(select(OutboxEmail).order_by(OutboxEmail.created_at)))


async def delivered(db: Database) -> SmtpMailbox:
    """What a real server received."""
    postbox = SmtpMailbox()
    with serve_smtp(postbox) as address:
        sender = OutboxWorker(
            db,
            Bus(),
            SmtpTransport(SmtpServer.from_url(f"smtp://{address}?tls=off"), "Lockstep <l@example.org>"),
            should_send,
        )
        while await sender.send_one():
            pass
    return postbox


@pytest.mark.parametrize(
    ("at", "zone", "due"),
    [
        ("2026-11-22T08:00+00:00", "UTC", "2026-11-22T08:00+00:00"),
        ("2026-11-22T07:59+00:00", "UTC", "2026-11-21T08:00+00:00"),
        ("2026-11-21T23:30+00:00", "Asia/Seoul", "2026-11-21T23:00+00:00"),
        ("2026-11-21T22:30+00:00", "Asia/Seoul", "2026-11-20T23:00+00:00"),
        ("2026-03-29T07:30+00:00", "Europe/Berlin", "2026-03-29T06:00+00:00"),
        ("2026-03-29T05:30+00:00", "Europe/Berlin", "2026-03-28T07:00+00:00"),
        ("2026-11-22T09:00+00:00", "No/Where", "2026-11-22T08:00+00:00"),
        ("2026-11-22T09:00+00:00", "../etc/passwd", "2026-11-22T08:00+00:00"),
    ],
)
def test_a_digest_is_due_at_eight_where_its_reader_lives(at: str, zone: str, due: str) -> None:
    assert latest_digest_time(datetime.fromisoformat(at), zone) == datetime.fromisoformat(due)


@pytest.mark.parametrize("language", SCRIPTS)
async def test_a_reply_is_mailed_at_once_as_text_and_as_html(database: Database, language: str) -> None:
    bob = await store_account(database, name="Bob <script>alert(1)</script>", email="bob@example.org")
    ada = await somebody(database, language)
    await tell(database, ada, "c1", actor_id=bob.id)

    assert await mailer(database).send_due(now()) == 1
    assert await mailer(database).send_due(now()) == 0
    (mail,) = (await delivered(database)).mails

    text, html = mail.get_body(("plain",)), mail.get_body(("html",))
    assert text is not None
    assert html is not None
    words, page = text.get_content().replace("\r\n", "\n"), html.get_content()
    assert mail["to"] == f"{language}@example.org"
    assert re.search(SCRIPTS[language], mail["subject"])
    assert "Bob" not in mail["subject"]
    assert re.search(rf"^{BASE}/{language}/comment/c1#c-c1$", words, re.MULTILINE)
    assert "About c1" in words
    assert f'<html lang="{language}">' in page
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    unsubscribe = re.fullmatch(rf"<{BASE}/{language}/unsubscribe_page/(\S+)>", mail["list-unsubscribe"])
    assert unsubscribe
    assert mail["list-unsubscribe-post"] == "List-Unsubscribe=One-Click"
    wish = OURS.verify(unsubscribe[1])
    assert (wish.account_id, wish.kind) == (ada.id, NotificationKind.reply)


@pytest.mark.parametrize("kind", [NotificationKind.reply, NotificationKind.mention, NotificationKind.answered])
async def test_a_name_that_is_an_encoded_word_adds_no_header(database: Database, kind: NotificationKind) -> None:
    name = "=?utf-8?q?x=0AReply-To:_eve@x.test=0A=0A<b>Sign_in?="
    eve = await store_account(database, name=name, email="eve@example.org")
    ada = await somebody(database)
    await tell(database, ada, "c1", kind=kind, actor_id=eve.id)
    await mailer(database).send_due(now())

    postbox = await delivered(database)

    (mail,), (raw,) = postbox.mails, postbox.raw
    assert mail["reply-to"] is None
    assert b"eve@x.test" not in raw.partition(b"\r\n\r\n")[0]
    ours = {
        "From",
        "To",
        "Subject",
        "Date",
        "Message-ID",
        "Auto-Submitted",
        "List-Unsubscribe",
        "List-Unsubscribe-Post",
    }
    assert sorted(mail) == sorted({*ours, "MIME-Version", "Content-Type"})
    page = mail.get_body(("html",))
    assert page is not None
    assert "<b>" not in page.get_content()


@pytest.mark.parametrize("language", SCRIPTS)
async def test_a_digest_holds_all_that_is_unread_in_one_mail_once_a_day(database: Database, language: str) -> None:
    ada = await somebody(database, language, email_frequency=EmailFrequency.daily, time_zone="Asia/Seoul")
    eight = datetime(2026, 11, 21, 8, tzinfo=ZoneInfo("Asia/Seoul"))
    for number in range(3):
        await tell(database, ada, f"c{number}", eight - timedelta(hours=number + 1))
    await tell(database, ada, "later", eight + timedelta(minutes=5))
    await tell(database, ada, "read", eight - timedelta(hours=1))
    async with database.writing() as session:
        await session.execute(update(Notification).where(Notification.subject == "read").values(read_at=eight))

    this = mailer(database)
    assert await this.send_due(eight + timedelta(hours=1)) == 1
    assert await this.send_due(eight + timedelta(hours=2)) == 0
    assert await this.send_due(eight + timedelta(hours=23, minutes=59)) == 0
    (mail,) = (await delivered(database)).mails
    text, html = mail.get_body(("plain",)), mail.get_body(("html",))
    assert text is not None
    assert html is not None
    for part in (text.get_content(), html.get_content()):
        assert [f"comment/c{number}" in part for number in range(3)] == [True] * 3
        assert "later" not in part
        assert "comment/read" not in part
    assert re.search(SCRIPTS[language], text.get_content())
    assert OURS.verify(mail["list-unsubscribe"].rpartition("/")[2].rstrip(">")).kind is None

    assert await this.send_due(eight + timedelta(days=1)) == 1
    (second,) = await outbox(database)
    assert "comment/later" in second.text
    assert "comment/c1" not in second.text


async def test_before_eight_no_digest_goes_out(database: Database) -> None:
    ada = await somebody(database, email_frequency=EmailFrequency.daily)
    eight = datetime(2026, 11, 21, 8, tzinfo=UTC)
    await tell(database, ada, "c1", eight - timedelta(hours=10))
    assert await mailer(database).send_due(eight - timedelta(seconds=1)) == 0
    assert await mailer(database).send_due(eight) == 1


async def test_who_wants_none_or_cannot_be_reached_gets_no_mail(database: Database) -> None:
    never = await somebody(database, "en", email_frequency=EmailFrequency.never)
    unsure = await somebody(database, "ko", email_confirmed_at=None)
    for account in (never, unsure):
        await tell(database, account, "c1")
    picky = await somebody(database, "zh")
    async with database.writing() as session:
        await service.opt_out_of_emails(session, picky.id, NotificationKind.reply)
        await service.opt_out_of_emails(session, picky.id, NotificationKind.reply)
    await tell(database, picky, "c1")
    await tell(database, picky, "a1", kind=NotificationKind.achievement)
    await tell(database, picky, GONE, kind=NotificationKind.mention)
    await tell(database, picky, "old", now() - timedelta(days=4), kind=NotificationKind.mention)
    assert await mailer(database).send_due(now()) == 0
    assert await outbox(database) == []

    async with database.writing() as session:
        await service.opt_in_to_emails(session, picky.id, NotificationKind.reply)
    assert await mailer(database).send_due(now()) == 1


async def test_several_processes_that_mail_at_once_send_each_digest_once(database: Database) -> None:
    people = [await somebody(database, code, email_frequency=EmailFrequency.daily) for code in SCRIPTS]
    eight = datetime(2026, 11, 21, 8, tzinfo=UTC)
    for account in people:
        for number in range(4):
            await tell(database, account, f"c{number}", eight - timedelta(hours=1))
    url = database.engine.url.render_as_string(hide_password=False)
    others = [Database(url, wait_s=60.0) for _ in range(3)]
    try:
        counts = await asyncio.gather(*(mailer(db).send_due(eight) for db in (database, *others)))
    finally:
        for db in others:
            await db.close()

    assert sum(counts) == len(people)
    assert sorted(mail.recipient for mail in await outbox(database)) == [
        "en@example.org",
        "ko@example.org",
        "zh@example.org",
    ]
    async with database.session() as session:
        mailed = select(func.count()).select_from(Notification).where(Notification.emailed_at.is_not(None))
        assert await session.scalar(mailed) == 4 * len(people)


async def test_one_mail_that_cannot_be_written_holds_up_no_other_and_stays_waiting(database: Database) -> None:
    for code in ("en", "ko"):
        await tell(database, await somebody(database, code), "c1")

    async def fails(
        session: AsyncSession, account: Account, subjects: Sequence[str]
    ) -> Mapping[str, NotificationContent]:
        if i18n.current_language() == "en":
            raise RuntimeError
        return await said(session, account, subjects)

    broken = NotificationMailer(database, Bus(), OURS, dict.fromkeys(NotificationKind, fails), path, BASE)
    assert await broken.send_due(now()) == 1
    assert [mail.recipient for mail in await outbox(database)] == ["ko@example.org"]
    assert await mailer(database).send_due(now()) == 1


async def test_comments_notify_people_mentioned_or_answered_and_emails_quote_them(
    database: Database, tmp_path: Path
) -> None:
    ada, bob = await somebody(database, "en"), await store_account(database, name="Bob", email="bob@example.org")
    cy = await somebody(database, "ko")
    question = CommentDraft("small/first", "", None, "Why four?", "k1", "en")
    async with database.writing() as session:
        root = await editing.create_comment(session, ada, question)
        reply = CommentDraft("small/first", "", root.id, f"Because of @{cy.handle} <b>four</b>", "k2", "en")
        told = await editing.create_comment(session, bob, reply)
        await moderation.set_answer(session, bob, told.id, on=True)
    async with database.session() as session:
        rows = {(row.account_id, row.kind) for row in await session.scalars(select(Notification))}
    assert rows == {(ada.id, "reply"), (cy.id, "mention"), (ada.id, "answered")}

    describers = dict.fromkeys(NotificationKind, CommentDescriber(Catalog(tmp_path)))
    this = NotificationMailer(database, Bus(), OURS, describers, path, BASE)
    assert await this.send_due(now()) == 2
    for mail in await outbox(database):
        assert "<b>four</b>" in mail.text
        assert "&lt;b&gt;four&lt;/b&gt;" in mail.html

    async with database.writing() as session:
        await editing.edit_comment(session, bob, told.id, "Because of **eight**", 0)
    assert await this.send_due(now()) == 2
    assert not [mail for mail in await outbox(database) if "<b>four" in mail.text or "eight" not in mail.text]

    async with database.writing() as session:
        await moderation.hide_comment(session, bob, told.id, "Not for everyone")
    assert not await outbox(database)
    async with database.writing() as session:
        await moderation.approve_comment(session, bob, told.id)
    assert await this.send_due(now()) == 2
    async with database.writing() as session:
        await editing.delete_comment(session, bob, told.id)
        assert await service.unread_count(session, ada.id) == 0
    assert not await outbox(database)


async def test_however_many_wait_they_are_read_in_small_steps_and_none_is_left_out(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.notifications.mailer._BATCH_SIZE", 2)
    at = datetime(2026, 11, 21, 20, tzinfo=UTC)
    early = await somebody(database, "ko", email_frequency=EmailFrequency.daily)
    for number in range(3):  # these wait for the morning, before all others
        await tell(database, early, f"d{number}", at - timedelta(seconds=1))
    for number in range(5):
        person = await store_account(database, name="Cy", email=f"cy{number}@example.org")
        for subject in ("c1", "c2"):
            await tell(database, person, subject, at)

    assert await mailer(database).send_due(at + timedelta(hours=1)) == 5

    assert {mail.recipient for mail in await outbox(database)} == {f"cy{number}@example.org" for number in range(5)}


async def test_what_waits_is_found_by_its_own_index(database: Database) -> None:
    person = await somebody(database, "en")
    at = now() - timedelta(hours=1)
    row = {"account_id": person.id, "kind": NotificationKind.reply, "read_at": None, "created_at": at}
    mailed = [row | {"id": f"m{n:05}", "subject": f"m{n}", "emailed_at": at} for n in range(5000)]
    async with database.writing() as session:  # a planner that knows of many rows and few waiting has one good plan
        await session.execute(insert(Notification), mailed)
        await session.execute(insert(Notification), [row | {"id": "w", "subject": "w", "emailed_at": None}])
    waiting = _pending(now(), (now() - timedelta(days=3), ""))
    engine = database.engine
    explain = "EXPLAIN" if engine.dialect.name == "postgresql" else "EXPLAIN QUERY PLAN"
    literal = str(waiting.compile(engine, compile_kwargs={"literal_binds": True}))
    async with engine.connect() as connection:
        await connection.exec_driver_sql("ANALYZE")
        plan = await connection.exec_driver_sql(f"{explain} {literal}")
        assert "ix_notifications_waiting" in str(plan.all())


async def test_an_email_that_waits_is_written_again_without_what_is_gone(database: Database) -> None:
    ada, carol = await somebody(database), await somebody(database, "ko")
    bob = await store_account(database, name="Bob Kahn")
    sender = mailer(database)
    for subject in ("c1", "c2"):
        await tell(database, ada, subject, actor_id=bob.id)
    await tell(database, carol, "c3")
    assert await sender.send_due(now()) == 2
    (hers,) = [mail for mail in await outbox(database) if mail.account_id == ada.id]
    assert "About c1" in hers.text

    async with database.writing() as session:
        await service.delete_notifications(session, "c1")
    assert [mail.account_id for mail in await outbox(database)] == [carol.id]
    assert await sender.send_due(now()) == 1
    (hers,) = [mail for mail in await outbox(database) if mail.account_id == ada.id]
    assert "About c1" not in hers.text
    assert "Bob Kahn replied" in hers.text

    async with database.writing() as session:
        await erase_account(session, bob, [service.erase_notifications])
    assert await sender.send_due(now()) == 1
    (hers,) = [mail for mail in await outbox(database) if mail.account_id == ada.id]
    assert "Someone replied" in hers.text
    assert "About c2" in hers.text
    (hers,) = [mail for mail in [await claim(database), await claim(database)] if mail and mail.account_id == ada.id]
    async with database.writing() as session:
        await service.delete_notifications(session, "c2")
    await reschedule(database, hers, "the mail server hangs", 60)
    assert [mail.account_id for mail in await outbox(database)] == [carol.id], "no second attempt follows"
    assert await sender.send_due(now()) == 0, "what may be on its way is not written again"
