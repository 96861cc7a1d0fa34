"""Parsing of forms, and validation of URLs on this site."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated
from urllib.parse import parse_qsl, urlsplit

from fastapi import Depends
from starlette.requests import Request

from app.errors import InvalidInput, RequestTooLarge, UnsupportedMediaType
from app.i18n import gettext

_FORM = "application/x-www-form-urlencoded"
_MAX_FORM_BYTES = 300_000
"""The longest comment has 120,000 if each character takes twelve. Decoding more takes a noticeable time, in which
nobody else is served."""
_MAX_FIELDS = 40
_MAX_KEY_LENGTH = 64
_MAX_PATH_LENGTH = 500
_INVALID_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
"""No browser sends one, and each takes five times as long to decode as a valid one."""
_LOCAL_PATH = re.compile(r"/(?![/\\])[!-\[\]-~]*")
"""A path: ASCII without spaces, control characters and backslashes, which browsers treat as slashes."""


async def read_form(request: Request) -> Mapping[str, str]:
    """The fields of a form; if a name repeats, its last value. Raises InvalidInput."""
    fields = await _parse_form(request, "strict")
    if any("\0" in name + value for name, value in fields.items()):
        raise InvalidInput(reason=gettext("it contains a NUL character"))
    return MappingProxyType(fields)


async def _read_lenient_form(request: Request) -> dict[str, str]:
    return await _parse_form(request, "surrogateescape")


FormFields = Annotated[dict[str, str], Depends(_read_lenient_form)]
"""The fields of forms that are shown again with errors: NUL stays, and invalid UTF-8 becomes lone surrogates.
``web.user_text.clean_text`` rejects both."""


async def read_form_body(request: Request) -> bytes:
    """The body of a form. Raises UnsupportedMediaType if it is something else."""
    body = await request.body()
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if body and media_type != _FORM:
        raise UnsupportedMediaType(expected=_FORM)
    return body


async def _parse_form(request: Request, errors: str) -> dict[str, str]:
    body = await read_form_body(request)
    if len(body) > _MAX_FORM_BYTES:
        raise RequestTooLarge(most_bytes=_MAX_FORM_BYTES)
    try:
        if _INVALID_ESCAPE.search(body):
            raise ValueError("a percent sign that begins no escape")
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MAX_FIELDS, errors=errors))
    except ValueError as e:
        raise InvalidInput(reason=gettext("it is not form data")) from e


def new_idempotency_key() -> str:
    """A new key that identifies one submission of a form."""
    return secrets.token_urlsafe(16)


def idempotency_key(fields: Mapping[str, str]) -> str:
    """The key in a form; a new one if it has no valid key."""
    key = fields.get("key", "")
    return key if 0 < len(key) <= _MAX_KEY_LENGTH and key.isascii() and key.isprintable() else new_idempotency_key()


def count_field(fields: Mapping[str, str], name: str) -> int:
    """A number from a form; -1 if it is not one. Pure."""
    text = fields.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else -1


def local_path(text: str | None) -> str | None:
    """The path if it leads to a page on this site, else None. Pure."""
    if text is None or len(text) > _MAX_PATH_LENGTH or not _LOCAL_PATH.fullmatch(text):
        return None
    try:
        parts = urlsplit(text)
    except ValueError:
        return None
    return text if not parts.scheme and not parts.netloc else None
