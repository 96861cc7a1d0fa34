"""Turns bare URLs in a text into links: only ``http`` and ``https``, and only ASCII.

Text that follows a URL without a space, such as a Korean particle or a Chinese comma, is not part of it, and no
lookalike of a Latin letter can lead to another site. Other URLs can be written as Markdown links.
"""

from __future__ import annotations

import re

from markdown_it.rules_inline import StateInline

_SCHEME = re.compile(r"https?\Z", re.IGNORECASE)
_MAX_SCHEME_LENGTH = len("https")
_URL_REST = re.compile(r"://[A-Za-z0-9][A-Za-z0-9._~:/?#@!$&()*+,;=%'-]*")
_TRAILING_PUNCTUATION = "?!.,:;*_~'&"


def autolink_rule(state: StateInline, silent: bool) -> bool:
    """A markdown-it rule: at a colon, match a URL whose scheme comes just before it."""
    if state.linkLevel or not state.src.startswith("://", state.pos):
        return False
    scheme = _scheme_before(state.src, state.pos)
    rest = _URL_REST.match(state.src, state.pos, state.posMax)
    if not scheme or rest is None or not state.pending.endswith(scheme):
        return False
    behind = _strip_trailing_punctuation(rest[0])
    if not silent:
        state.pending = state.pending.removesuffix(scheme)
        opening = state.push("link_open", "a", 1)
        opening.attrs = {"href": state.md.normalizeLink(scheme + behind)}
        state.push("text", "", 0).content = scheme + behind
        state.push("link_close", "a", -1)
    state.pos += len(behind)
    return True


def _scheme_before(text: str, at: int) -> str:
    """The ``http`` or ``https`` before this position, as written; empty if it is the end of a longer word."""
    begins = max(0, at - _MAX_SCHEME_LENGTH)
    found = _SCHEME.search(text[begins:at])
    if found is None:
        return ""
    start = begins + found.start()
    before = text[start - 1] if start else " "
    within_a_word = before.isascii() and (before.isalnum() or before in "_+.-")
    return "" if within_a_word else found[0]


def _strip_trailing_punctuation(address: str) -> str:
    """The URL without trailing punctuation of its sentence and without a closing parenthesis that it does not open."""
    unopened = address.count(")") - address.count("(")
    while address[-1] in _TRAILING_PUNCTUATION or (address[-1] == ")" and unopened > 0):
        unopened -= address[-1] == ")"
        address = address[:-1]
    return address
