"""The text of tokens without markup, and IDs made from it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from markdown_it.token import Token


def plain_text(inline: Token) -> str:
    """The text of an ``inline`` token on one line."""
    return " ".join("".join(_parts(inline.children or [])).split())


def _parts(children: list[Token]) -> Iterator[str]:
    for child in children:
        if child.type in ("softbreak", "hardbreak"):
            yield " "
        elif child.type not in ("html_inline", "footnote_ref"):
            yield child.content


def text_id(text: str) -> str:
    """The letters and digits of any script, joined by hyphens."""
    words = re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold())
    return "-".join(words)[:80] or "section"
