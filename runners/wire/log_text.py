"""Escapes what a terminal would obey in a log, because learners and strangers write parts of it. Pure."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

_TRACEBACKS = ("exception", "stack")


def escape_controls(text: str, *, keep: str) -> str:
    """Escape everything in a text that is not printable, as Python would, except the characters of ``keep``."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each in keep else each.encode("unicode_escape").decode() for each in text
    )


def escape_entry(_logger: object, _method: str, entry: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A processor of structlog. Tracebacks keep their lines; ``repr`` escapes values that are not text."""
    for key, value in entry.items():
        if isinstance(value, str):
            entry[key] = escape_controls(value, keep="\n" if key in _TRACEBACKS else "")
    return entry
