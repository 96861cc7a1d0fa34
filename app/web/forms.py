"""Forms as browsers post them, and addresses of our own to go on to."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated
from urllib.parse import parse_qsl, urlsplit

from fastapi import Depends
from starlette.requests import Request

from app.errors import InvalidInput
from app.i18n import gettext

_MAX_FIELDS = 40
_MAX_KEY_LENGTH = 64
_MAX_PATH_LENGTH = 500
_LOCAL_PATH = re.compile(r"/(?![/\\])[!-\[\]-~]*")
"""A path: ASCII without blanks, control characters and backslashes, which browsers take for slashes."""


async def read_form(request: Request) -> Mapping[str, str]:
    """The fields of a posted form; of several with one name the last. Raises Unreadable."""
    fields = await _parse_form(request, "strict")
    if any("\0" in name + value for name, value in fields.items()):
        raise InvalidInput(reason=gettext("it contains a NUL character"))
    return MappingProxyType(fields)


async def _read_lenient_form(request: Request) -> dict[str, str]:
    return await _parse_form(request, "surrogateescape")


FormFields = Annotated[dict[str, str], Depends(_read_lenient_form)]
"""The same for forms that come back with what was typed: NUL stays, bytes that are no UTF-8 become lone surrogates.
``web.user_text.clean_text`` takes neither."""


async def _parse_form(request: Request, errors: str) -> dict[str, str]:
    try:
        body = (await request.body()).decode()
        return dict(parse_qsl(body, keep_blank_values=True, max_num_fields=_MAX_FIELDS, errors=errors))
    except ValueError as e:
        raise InvalidInput(reason=gettext("it is not form data")) from e


def new_idempotency_key() -> str:
    """What tells one filled-in form from another."""
    return secrets.token_urlsafe(16)


def idempotency_key(fields: Mapping[str, str]) -> str:
    """The key that came with a form; a new one if it is none."""
    key = fields.get("key", "")
    return key if 0 < len(key) <= _MAX_KEY_LENGTH and key.isascii() and key.isprintable() else new_idempotency_key()


def count_field(fields: Mapping[str, str], name: str) -> int:
    """A count that a form brought back; -1, which no count is, for anything else. Pure."""
    text = fields.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else -1


def local_path(text: str | None) -> str | None:
    """The path, if it leads to a page of this site and nowhere else. Pure."""
    if text is None or len(text) > _MAX_PATH_LENGTH or not _LOCAL_PATH.fullmatch(text):
        return None
    try:
        parts = urlsplit(text)
    except ValueError:
        return None
    return text if not parts.scheme and not parts.netloc else None
