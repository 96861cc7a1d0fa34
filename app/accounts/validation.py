"""What an email address and a name may be. Pure."""

from __future__ import annotations

import re
import unicodedata

from email_validator import EmailNotValidError, validate_email

from app.i18n import N_

INVALID_EMAIL = N_("Enter a complete email address, such as ada@example.org.")
INVALID_NAME = N_("Enter a name of at most 80 characters.")
MAX_NAME_LENGTH = 80
"""Characters."""
MAX_EMAIL_LENGTH = 320
"""Characters of an address; to read a longer text as one takes time."""
_INVISIBLE_CATEGORIES = {"Cc", "Cs", "Co", "Cn", "Zl", "Zp"}
_BIDI_OR_HIDDEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\U000e0000-\U000e007f]"
)
"""What turns the direction of the text around it, or hides in it."""
_MAX_COMBINING_MARKS = 4
"""Combining marks on one letter: more of them cover the lines around it."""


def normalize_email(text: str) -> str | None:
    """The address as mail goes to it, in ASCII; None if it is none that every mail server takes. Pure."""
    if (
        len(text) > MAX_EMAIL_LENGTH or "=?" in text
    ):  # programs that read mail decode what follows, line breaks included
        return None
    try:
        return validate_email(text.strip(), check_deliverability=False, allow_smtputf8=False).ascii_email
    except EmailNotValidError:
        return None


def email_key(email: str) -> str:
    """One spelling of an address, which an account is found by. Pure."""
    return unicodedata.normalize("NFKC", email).casefold()


def normalize_name(text: str) -> str | None:
    """A name as it is shown: one line, no marks that steer the text around it; None if nothing can be read. Pure."""
    whole = " ".join(unicodedata.normalize("NFC", text).split())
    seen = any(unicodedata.category(c)[0] in "LN" for c in whole)
    hidden = any(unicodedata.category(c) in _INVISIBLE_CATEGORIES for c in whole) or _BIDI_OR_HIDDEN.search(whole)
    kinds = "".join("m" if unicodedata.category(c) in ("Mn", "Me") else "." for c in whole[: MAX_NAME_LENGTH + 1])
    stacked = "m" * (_MAX_COMBINING_MARKS + 1) in kinds
    return whole if seen and not hidden and not stacked and len(whole) <= MAX_NAME_LENGTH else None
