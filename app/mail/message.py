"""Builds an email as bytes: its headers, and its body as text and HTML.

Python's email package decodes encoded words (``=?utf-8?q?…?=``) in every value that is set as a header, including line
breaks. So values from the database must not contain any, and the bytes are parsed again before they are sent.
"""

from __future__ import annotations

import re
import unicodedata
from email.errors import MessageError
from email.headerregistry import Address, BaseHeader, HeaderRegistry, UnstructuredHeader
from email.message import EmailMessage
from email.parser import BytesHeaderParser
from email.policy import SMTP, Policy
from email.utils import format_datetime, parseaddr

from app.mail.models import OutboxEmail

_ENCODED_WORD_START = re.compile(r"=[=\s]*\?")


class _UrlHeader(UnstructuredHeader, BaseHeader):
    """A header that is a URL, on one line of any length.

    The email package folds a long word by encoding it (RFC 2047). Programs do not decode the URL of RFC 2369.
    """

    def fold(self, *, policy: Policy) -> str:
        return f"{self.name}: {self}{policy.linesep}"


_HEADERS = HeaderRegistry()
_HEADERS.map_to_type("list-unsubscribe", _UrlHeader)
_POLICY = SMTP.clone(header_factory=_HEADERS)


class UnsafeMessage(Exception):
    """A reader would see other headers than those that were set. The email is not sent."""


def to_bytes(mail: OutboxEmail, sender: str) -> bytes:
    """The email as it is sent. Pure.

    Raises:
        UnsafeMessage: the bytes parse to other headers than those that were set.
    """
    message = build_message(mail, sender)
    try:
        raw = message.as_bytes()
    except MessageError as e:  # since Python 3.13, the package finds some of them itself
        raise UnsafeMessage(f"its headers cannot be written: {e}") from e
    if _normalized_headers(BytesHeaderParser(policy=SMTP).parsebytes(raw)) != _normalized_headers(message):
        raise UnsafeMessage("its bytes parse to other headers than those that were set")
    return raw


def build_message(mail: OutboxEmail, sender: str) -> EmailMessage:
    """The email with its headers, as text and HTML. Pure.

    Raises:
        UnsafeMessage: the recipient's address contains an encoded word.
    """
    if "=?" in mail.recipient:
        raise UnsafeMessage("the recipient's address contains an encoded word")
    name, address = parseaddr(sender)
    message = EmailMessage(_POLICY)
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

    An encoded word starts with ``=?``. Inserting a space is not enough, because folding may remove it.
    """
    printable = "".join(" " if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") else c for c in text)
    return _ENCODED_WORD_START.sub("?", " ".join(printable.split()))


def _normalized_headers(message: EmailMessage) -> list[tuple[str, str]]:
    """Header names and values, in order. Whitespace does not count: folding long lines changes it."""
    return [(name, "".join(str(value).split())) for name, value in message.items()]
