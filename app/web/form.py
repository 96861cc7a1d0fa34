"""Forms as browsers post them, and addresses of our own to go on to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import Request

from app.errors import Unreadable

_MOST_FIELDS = 40
_MOST_PATH = 500
_OWN = re.compile(r"/(?![/\\])[!-\[\]-~]*")
"""A path: ASCII without blanks, control characters and backslashes, which browsers take for slashes."""


async def read_form(request: Request) -> Mapping[str, str]:
    """The fields of a posted form; of several with one name the last. Raises Unreadable."""
    try:
        fields = parse_qsl(
            (await request.body()).decode(),
            keep_blank_values=True,
            max_num_fields=_MOST_FIELDS,
            encoding="utf-8",
            errors="strict",
        )
    except ValueError as e:
        raise Unreadable(reason="it is no form") from e
    if any("\0" in name + value for name, value in fields):
        raise Unreadable(reason="it holds a NUL character")
    return MappingProxyType(dict(fields))


def own_path(text: str | None) -> str | None:
    """The path, if it leads to a page of this site and nowhere else. Pure."""
    if text is None or len(text) > _MOST_PATH or not _OWN.fullmatch(text):
        return None
    try:
        parts = urlsplit(text)
    except ValueError:
        return None
    return text if not parts.scheme and not parts.netloc else None
