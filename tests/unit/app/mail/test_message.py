"""Whatever learners write, an email has only the intended headers: a test reads what a real server received."""

from __future__ import annotations

import asyncio
import re
from base64 import b64encode
from collections.abc import Iterator
from email import message_from_bytes, policy
from email.headerregistry import Address
from email.message import EmailMessage
from quopri import encodestring

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounts.models import Account
from app.accounts.validation import MAX_NAME_LENGTH, normalize_email, normalize_name
from app.db import now
from app.mail.message import UnsafeMessage, to_bytes
from app.mail.models import OutboxEmail
from app.mail.renderer import TemplatedEmail, render_email
from app.mail.transport import SmtpServer, SmtpTransport
from app.notifications.models import Notification, NotificationKind
from app.notifications.views import NotificationContent, NotificationView
from tests.factories.hypothesis_examples import example_count
from tests.factories.smtp_server import SmtpMailbox, serve_smtp

SENDER = "Lockstep <learn@example.org>"
UNSUBSCRIBE = "https://learn.example.org/en/unsubscribe/abc"
HEADERS = [
    *("From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted"),
    *("List-Unsubscribe", "List-Unsubscribe-Post", "MIME-Version", "Content-Type"),
]
FOUND = "=?utf-8?q?x=0AReply-To:_evil@x.test=0A=0A<b>hi</b>?="
"""The display name that this file is here for: 52 characters that every form took."""
SMUGGLED = st.sampled_from(
    [
        "a\nReply-To: e@x.test\n\n<b>hi",
        "a\r\nBcc: e@x.test",
        "\n\n<script>",
        "\0",
        "\x1b[2J",
        "\u2028",
        "\u202eb",
        "Ada",
    ]
)


@st.composite
def encoded_words(draw: st.DrawFn) -> str:
    text = draw(SMUGGLED).encode()
    charset = draw(st.sampled_from(["utf-8", "UTF-8", "us-ascii", "utf-8*en", "x-none", ""]))
    if draw(st.booleans()):
        return f"=?{charset}?b?{b64encode(text).decode()}?="
    words = encodestring(text, header=True).decode().replace("=\n", "").replace("\n", "=0A").replace("\r", "=0D")
    return f"=?{charset}?{draw(st.sampled_from('qQ'))}?{words}?="


PIECES = st.one_of(
    encoded_words(),
    st.sampled_from(
        ["=?", "?=", "=", "?", " ", "= ?", "==??", "<b>", "&#10;", "\\n", "%0A", "김", "@x.test", ",", ";", '"']
    ),
    st.text(max_size=5),
)
HOSTILE = st.lists(PIECES, min_size=1, max_size=6).map("".join)


@pytest.fixture(scope="module")
def postbox() -> SmtpMailbox:
    return SmtpMailbox()


@pytest.fixture(scope="module")
def smtp(postbox: SmtpMailbox) -> Iterator[SmtpTransport]:
    with serve_smtp(postbox) as address:
        yield SmtpTransport(SmtpServer.from_url(f"smtp://{address}?tls=off"), SENDER)


def queued(subject: str, to: str = "ada@example.org", text: str = "x\n", html: str = "<p>x</p>") -> OutboxEmail:
    return OutboxEmail(
        id="ab" * 16, recipient=to, subject=subject, text=text, html=html, unsubscribe_url=UNSUBSCRIBE, created_at=now()
    )


def news(name: str, kind: NotificationKind, quoted: str) -> OutboxEmail:
    """The queued email after somebody with that name did something."""
    view = NotificationView(
        Notification(kind=kind),
        Account(name=name),
        NotificationContent("A lesson", quoted, "comment", {"comment_id": "c1"}, "#c-c1"),
    )
    items = [{"view": view, "url": "https://learn.example.org/en/comment/c1#c-c1"}]
    values = {"name": name, "items": items, "more": 0, "count": 1, "all_url": "/all", "settings_url": "/settings"}
    letter = render_email(
        TemplatedEmail(
            "ada@example.org", "en", "notifications/mail/notifications.html", values, unsubscribe_url=UNSUBSCRIBE
        )
    )
    return queued(letter.subject, text=letter.text, html=letter.html)


def sent(smtp: SmtpTransport, postbox: SmtpMailbox, mail: OutboxEmail) -> tuple[list[tuple[str, str]], EmailMessage]:
    """The header lines that a real server received, unfolded by hand, and the email as a program parses it."""
    asyncio.run(smtp.send(mail))
    raw = postbox.raw.pop()
    lines = re.sub(r"\r\n(?=[ \t])", "", raw.partition(b"\r\n\r\n")[0].decode("ascii")).split("\r\n")
    assert not re.search(rb"[\0-\x08\x0b\x0c\x0e-\x1f\x7f]|(?<!\r)\n|\r(?!\n)", raw.partition(b"\r\n\r\n")[0])
    read = message_from_bytes(raw, policy=policy.default)
    assert isinstance(read, EmailMessage)
    return [(name, value.strip()) for name, _colon, value in (line.partition(":") for line in lines)], read


def part(mail: EmailMessage, kind: str) -> str:
    found = mail.get_body((kind,))
    assert found is not None
    content = found.get_content()
    assert isinstance(content, str)
    return content.replace("\r\n", "\n").rstrip("\n")


@pytest.mark.parametrize("kind", NotificationKind)
def test_a_name_that_decodes_to_headers_stays_in_the_body(
    kind: NotificationKind, smtp: SmtpTransport, postbox: SmtpMailbox
) -> None:
    assert normalize_name(FOUND) == FOUND

    headers, read = sent(smtp, postbox, news(FOUND, kind, FOUND))

    assert [name for name, _value in headers] == HEADERS
    assert not any("evil" in value or "=?" in value for _name, value in headers)
    assert FOUND in part(read, "plain")
    assert "<b>" not in part(read, "html")


@example_count(40)
@given(name=HOSTILE, kind=st.sampled_from(NotificationKind), quoted=HOSTILE)
def test_no_name_changes_a_header_or_the_structure_of_a_page(
    smtp: SmtpTransport, postbox: SmtpMailbox, name: str, kind: NotificationKind, quoted: str
) -> None:
    shown = normalize_name(name)
    if shown is None:
        return
    words = " ".join(
        "".join(c for c in quoted if c.isprintable()).split()
    )  # as app.comments.notification_content quotes a comment
    ordinary, theirs = news("Ada", kind, "A comment"), news(shown, kind, words)

    headers, read = sent(smtp, postbox, theirs)
    expected, _read = sent(smtp, postbox, ordinary)

    unlike = {"Date", "Content-Type"}
    assert [name for name, _value in headers] == HEADERS
    assert [pair for pair in headers if pair[0] not in unlike] == [pair for pair in expected if pair[0] not in unlike]
    assert [part.get_content_type() for part in read.walk()] == ["multipart/alternative", "text/plain", "text/html"]
    assert part(read, "html") == theirs.html.rstrip("\n")
    tags = [re.findall(r"<[^>]*>", mail.html) for mail in (theirs, ordinary)]
    assert [tag for tag in tags[0] if "quote" not in tag] == [tag for tag in tags[1] if "quote" not in tag]


@example_count(40)
@given(subject=HOSTILE)
def test_a_subject_that_was_queued_with_a_name_goes_out_as_the_text_it_is(
    smtp: SmtpTransport, postbox: SmtpMailbox, subject: str
) -> None:
    stored = subject.encode("utf-8", "ignore").decode()[:200]

    headers, read = sent(smtp, postbox, queued(f"{stored} replied in one of your threads"))

    assert [name for name, _value in headers] == HEADERS
    assert read["subject"].replace(" ", "").endswith("repliedinoneofyourthreads")
    assert "=?" not in read["subject"], "what decodes once more is gone"
    assert (read["to"], read["reply-to"], read["bcc"]) == ("ada@example.org", None, None)


@pytest.mark.parametrize("control", [chr(n) for n in (*range(32), *range(127, 160), 0x2028, 0x2029)])
def test_no_name_holds_a_control_character(control: str) -> None:
    kept = normalize_name(f"Ada{control}Byron")
    assert kept in (None, "Ada Byron"), "a line break in a form is a blank, anything else is refused"


def test_an_address_that_mail_programs_decode_is_refused() -> None:
    address = "=?utf-8?q?x=0ABcc=0Aevil?=@example.org"
    assert normalize_email(address) is None
    with pytest.raises(UnsafeMessage, match="address"):
        to_bytes(queued("Hello", to=address), SENDER)


def test_the_unsubscribe_url_is_readable_however_long_it_is(smtp: SmtpTransport, postbox: SmtpMailbox) -> None:
    mail = queued("Hello")
    mail.unsubscribe_url = f"{UNSUBSCRIBE}{'0123456789' * 20}"

    headers, _read = sent(smtp, postbox, mail)

    assert dict(headers)["List-Unsubscribe"] == f"<{mail.unsubscribe_url}>"


def test_bytes_that_read_back_as_other_headers_are_not_sent() -> None:
    assert len(FOUND) <= MAX_NAME_LENGTH
    mail = queued("Hello")
    mail.unsubscribe_url = f"https://learn.example.org/{FOUND}"
    with pytest.raises(UnsafeMessage, match="headers"):
        to_bytes(mail, SENDER)


def test_a_subject_in_any_script_is_read_as_it_was_written() -> None:
    for subject in ("New reply in one of your threads", "내 스레드에 새 답글이 있습니다" * 8, "=" * 200, "a " * 90):
        read = message_from_bytes(to_bytes(queued(subject), SENDER), policy=policy.default)
        assert read["subject"] == subject.strip()
        assert read["from"].addresses == (Address("Lockstep", addr_spec="learn@example.org"),)
