"""What people write, as it is kept and shown: characters that every database, browser and reader can bear. Pure."""

from __future__ import annotations

import re
import unicodedata

from app.errors import InvalidInput
from app.i18n import N_

MAX_COMBINING_MARKS = 4
"""Combining marks on one letter; Vietnamese has two, pointed Hebrew and Tibetan a few more."""

_CONTROLS = re.compile(r"[\x01-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff]")
_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")
_BLANK_LETTERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""They show nothing, whatever kind of character they are."""
_BIDI_CONTROLS = {
    ord(character): f"[U+{ord(character):04X}]"
    for character in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
}


class TextEmpty(InvalidInput):
    code = "text_empty"
    message = N_("Write something first.")


class TextTooLong(InvalidInput):
    code = "text_too_long"
    message = N_("This text has {size:,} characters, and the limit is {most:,}.")


class TextInvalid(InvalidInput):
    code = "not_text"
    message = N_("The text contains a character that cannot be stored. Remove it and send again.")


def clean_text(text: str, most: int) -> str:
    """The text as it is kept: composed, with plain line ends, without control characters, marks stacked only so high.

    Args:
        most: characters that it may have then.

    Raises:
        NotText, TextTooLong, TextEmpty: it cannot be kept.
    """
    if _UNSTORABLE.search(text):
        raise TextInvalid
    plain = _CONTROLS.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    if len(plain) > most:
        raise TextTooLong(size=len(plain), most=most)
    kept = _limit_combining_marks(unicodedata.normalize("NFC", plain)).strip("\n").rstrip()
    if len(kept) > most:  # a few characters become longer when they are composed
        raise TextTooLong(size=len(kept), most=most)
    if not any(map(_is_visible, kept)):
        raise TextEmpty
    return kept


def escape_bidi_controls(text: str) -> str:
    """The text with what would turn the direction of writing around written out: ``[U+202E]``."""
    return text.translate(_BIDI_CONTROLS)


def redisplayed_text(text: str) -> str:
    """What somebody typed as a page can show it again, even if it could not be taken."""
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
