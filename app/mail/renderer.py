"""Renders emails: a template in the recipient's language, as HTML and as plain text derived from it.

A template extends ``mail/base.html`` and fills ``subject`` and ``body``; ``body`` consists of paragraphs, lists and
links.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

from app import i18n
from app.web.rendering import template_environment

_MAX_SUBJECT_LENGTH = 200
_SUBJECT = re.compile(r"<title>(.*?)</title>", re.DOTALL)
_BODY = re.compile(r"<main>(.*)</main>", re.DOTALL)
_BLOCK_TAGS = frozenset({"p", "h1", "h2", "h3", "li", "blockquote"})


@dataclass(frozen=True, slots=True)
class TemplatedEmail:
    """An email to render: recipient, language, template and values."""

    to: str
    language: str
    template: str
    values: Mapping[str, Any] = field(default_factory=dict)
    account_id: str | None = None
    """The account it is about, if the email is not to be sent after the account is deleted."""
    sender_id: str | None = None
    """The account that it names as its writer, if the email is not to be sent after that account is deleted."""
    unsubscribe_url: str = ""
    """The URL that stops emails of this kind with one click."""


@dataclass(frozen=True, slots=True)
class RenderedEmail:
    subject: str
    text: str
    html: str


def render_email(mail: TemplatedEmail) -> RenderedEmail:
    with i18n.use_language(mail.language):
        why = i18n.gettext("Lockstep teaches distributed TensorFlow by letting you run it.")
        values = {"lang": mail.language, "unsubscribe_url": mail.unsubscribe_url, "why": why, **mail.values}
        html = template_environment(False).get_template(mail.template).render(values)
        ending = [f"-- \n{why}"]
        if mail.unsubscribe_url:
            ending.insert(0, _address_below(i18n.gettext("Stop these emails"), mail.unsubscribe_url))
        subject, body = _SUBJECT.search(html), _BODY.search(html)
        assert subject, "a mail's template extends mail/base.html"
        assert body
        line = " ".join(_to_plain_text(subject[1]).split())[:_MAX_SUBJECT_LENGTH]
        return RenderedEmail(line, "\n\n".join([_to_plain_text(body[1]), *ending]) + "\n", html)


def _address_below(words: str, address: str) -> str:
    return i18n.gettext("%(words)s:") % {"words": words} + f"\n{address}"


def _to_plain_text(html: str) -> str:
    reader = _PlainTextParser()
    reader.feed(html)
    reader.close()
    return "\n\n".join(part for part in map(str.strip, reader.parts) if part)


class _PlainTextParser(HTMLParser):
    """Collects paragraphs as text; a link becomes its text, followed by its URL on a separate line."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts = [""]
        self._address = ""
        self._quoted = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _BLOCK_TAGS:
            self._quoted = tag == "blockquote"
            self.parts.append("* " if tag == "li" else "> " if self._quoted else "")
        elif tag == "br":
            self.parts[-1] += "\n> " if self._quoted else "\n"
        elif tag == "a":
            self._address = dict(attrs).get("href") or ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "a" and self._address:
            self.parts[-1] = f"{_address_below(self.parts[-1], self._address)}\n"
            self._address = ""
        elif tag in _BLOCK_TAGS:
            self._quoted = False
            self.parts.append("")

    def handle_data(self, data: str) -> None:
        words = " ".join(data.split())
        gap = " " if data[:1].isspace() and self.parts[-1] and not self.parts[-1][-1].isspace() else ""
        tail = " " if words and data[-1:].isspace() else ""
        self.parts[-1] += gap + words + tail
