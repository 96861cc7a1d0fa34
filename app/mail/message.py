"""A mail as the bytes that leave: its headers, and its body as text and as HTML.

Python's email package decodes encoded words (``=?utf-8?q?…?=``) in every value that a header is set to, line breaks
included. So a value out of a database must not hold one, and the bytes are read back before they leave.
"""

from __future__ import annotations

import re
import unicodedata
from email.headerregistry import Address
from email.message import EmailMessage
from email.parser import BytesHeaderParser
from email.policy import SMTP
from email.utils import format_datetime, parseaddr

from app.mail.models import OutboxEmail

_ENCODED_WORD_START = re.compile(r"=[=\s]*\?")


class UnsafeMessage(Exception):
    """The headers that a reader would see are not those that were set. It is not sent."""


def to_bytes(mail: OutboxEmail, sender: str) -> bytes:
    """The mail as it is sent. Pure.

    Raises:
        UnsafeMessage: the bytes parse back to other headers than those that were set.
    """
    message = build_message(mail, sender)
    raw = message.as_bytes(policy=SMTP)
    if _normalized_headers(BytesHeaderParser(policy=SMTP).parsebytes(raw)) != _normalized_headers(message):
        raise UnsafeMessage("its bytes parse back to other headers than those that were set")
    return raw


def build_message(mail: OutboxEmail, sender: str) -> EmailMessage:
    """The mail with its headers, as text and as HTML. Pure.

    Raises:
        UnsafeMessage: the recipient's address holds an encoded word.
    """
    if "=?" in mail.recipient:
        raise UnsafeMessage("the recipient's address holds an encoded word")
    name, address = parseaddr(sender)
    message = EmailMessage()
    message["From"] = Address(name or "Lockstep", addr_spec=address)
    message["To"] = Address(addr_spec=mail.recipient)
    message["Subject"] = header_safe(mail.subject)
    message["Date"] = format_datetime(mail.created_at)
    message["Message-ID"] = f"<{mail.id}@{address.rpartition('@')[2]}>"
    message["Auto-Submitted"] = "auto-generated"
    if mail.unsubscribe_url:
        message["List-Unsubscribe"] = f"<{mail.unsubscribe_url}>"
        message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    message.set_content(mail.text)
    message.add_alternative(mail.html, subtype="html")
    return message


def header_safe(text: str) -> str:
    """The text as a header value that no parser decodes: one line, no control characters, no encoded words. Pure.

    An encoded word begins with ``=?``. A blank between the two is not enough, because folding may drop it.
    """
    printable = "".join(" " if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") else c for c in text)
    return _ENCODED_WORD_START.sub("?", " ".join(printable.split()))


def _normalized_headers(message: EmailMessage) -> list[tuple[str, str]]:
    """Names and values in their order. Blanks do not count: folding a long line moves them."""
    return [(name, "".join(str(value).split())) for name, value in message.items()]
