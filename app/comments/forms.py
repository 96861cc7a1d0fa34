"""The forms of comments: what a browser sends, and what stands in a form when it is shown."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated
from urllib.parse import parse_qsl

from fastapi import Depends
from markupsafe import Markup
from starlette.requests import Request

from app.comments.models import Comment
from app.errors import Unreadable

_MOST_FIELDS = 12
_MOST_KEY = 64


class Ask(StrEnum):
    """What a form beside a comment is for."""

    reply = "reply"
    edit = "edit"
    delete = "delete"
    report = "report"
    hide = "hide"


@dataclass(frozen=True, slots=True)
class Form:
    """A form as it is shown. ``error`` is a sentence about the text; ``about`` is the comment it stands beside."""

    lesson: str
    cell: str = ""
    ask: Ask | None = None
    about: Comment | None = None
    text: str = ""
    key: str = ""
    edits: int = 0
    error: str = ""

    @property
    def id(self) -> str:
        """Its id on the page."""
        return f"{self.ask}-{self.about.id}" if self.ask and self.about else "new-comment"

    @property
    def typed(self) -> str:
        """The text as a page can show it again."""
        return self.text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")

    @property
    def quoted(self) -> Markup:
        """What the comment beside it says; whoever gets the form may read it."""
        return Markup(self.about.html if self.about else "")  # noqa: S704 - comments.markdown cleaned it


def new_key() -> str:
    """What tells one filled-in form from another."""
    return secrets.token_urlsafe(16)


async def _fields(request: Request) -> dict[str, str]:
    try:
        body = (await request.body()).decode("ascii")
        return dict(parse_qsl(body, keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="surrogateescape"))
    except ValueError as e:
        raise Unreadable(reason="application/x-www-form-urlencoded") from e


Fields = Annotated[dict[str, str], Depends(_fields)]
"""The fields of a form. Bytes that are no UTF-8 become lone surrogates, which no text may have."""


def key_of(fields: dict[str, str]) -> str:
    """The key that came with a form; a new one if it is none."""
    key = fields.get("key", "")
    return key if 0 < len(key) <= _MOST_KEY and key.isascii() and key.isprintable() else new_key()
