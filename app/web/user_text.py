"""Cleans user-written text, so that databases, browsers and readers can handle all of its characters. Pure."""

from __future__ import annotations

import re
import unicodedata

from markupsafe import Markup, escape

from app.errors import InvalidInput
from app.i18n import N_

MAX_COMBINING_MARKS = 4
"""Per letter; Vietnamese needs two, pointed Hebrew and Tibetan a few more."""

_CONTROLS = re.compile(r"[\x01-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff]")
_CODE_SPAN = re.compile(r"`([^`\n]+)`")
_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")
_BLANK_LETTERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Characters that are invisible although Unicode does not say so."""
_BIDI_CONTROLS = {
    ord(character): f"[U+{ord(character):04X}]"
    for character in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
}


class TextEmpty(InvalidInput):
    message = N_("Write something first.")


class TextTooLong(InvalidInput):
    message = N_("This text has {size:,} characters, and the limit is {most:,}.")


class TextInvalid(InvalidInput):
    message = N_("The text contains a character that cannot be stored. Remove it and send again.")


def clean_text(text: str, most: int) -> str:
    """The text to store: in composed form, with Unix line ends, without control characters, with few combining marks.

    Args:
        most: characters that the result may have.

    Raises:
        TextInvalid, TextTooLong, TextEmpty: the text cannot be stored.
    """
    if _UNSTORABLE.search(text):
        raise TextInvalid
    plain = _CONTROLS.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    if len(plain) > most:
        raise TextTooLong(size=len(plain), most=most)
    kept = _limit_combining_marks(unicodedata.normalize("NFC", plain)).strip("\n").rstrip()
    if len(kept) > most:  # composing makes a few characters longer
        raise TextTooLong(size=len(kept), most=most)
    if not any(map(_is_visible, kept)):
        raise TextEmpty
    return kept


def escape_bidi_controls(text: str) -> str:
    """The text with bidirectional control characters made visible: ``[U+202E]``."""
    return text.translate(_BIDI_CONTROLS)


def redisplayed_text(text: str) -> str:
    """A user's text in a form that a page can show again, even if it was rejected."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def _limit_combining_marks(text: str) -> str:
    kept: list[str] = []
    marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.category(character) in ("Mn", "Me") else 0
        if marks <= MAX_COMBINING_MARKS:
            kept.append(character)
    return "".join(kept)


def _is_visible(character: str) -> bool:
    return (
        not character.isspace()
        and character not in _BLANK_LETTERS
        and unicodedata.category(character) not in ("Cc", "Cf", "Mn", "Me", "Cn", "Zs")
    )


def code_spans(text: str) -> Markup:
    """The text with what is between two backticks as ``<code>``, as in Markdown; everything else is escaped."""
    return Markup(_CODE_SPAN.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped; backticks stay as they are
