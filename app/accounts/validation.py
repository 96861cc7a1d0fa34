"""Validation and normalization of email addresses and names, and the time zones to choose from. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from zoneinfo import available_timezones

from email_validator import EmailNotValidError, validate_email

from app.i18n import N_

INVALID_EMAIL = N_("Enter a complete email address, such as ada@example.org.")
INVALID_NAME = N_("Enter a name of at most 80 characters.")
MAX_NAME_LENGTH = 80
"""In characters."""
_MAX_TYPED_NAME = 1000
"""In characters, as typed: composed letters and single spaces make a name shorter, and a long text takes too long."""
MAX_EMAIL_LENGTH = 320
"""In characters; parsing a longer text as an address takes too long."""
_INVISIBLE_CATEGORIES = {"Cc", "Cs", "Co", "Cn", "Zl", "Zp"}
_BIDI_OR_HIDDEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\U000e0000-\U000e007f]"
)
"""Characters that change the direction of the surrounding text or are invisible."""
_MAX_COMBINING_MARKS = 4
"""Per letter: more of them cover the lines around it."""


def normalize_email(text: str) -> str | None:
    """The address in ASCII, as mail is sent to it; None if it is not valid for every mail server. Pure."""
    if len(text) > MAX_EMAIL_LENGTH or "=?" in text:  # mail programs decode what follows, including line breaks
        return None
    try:
        return validate_email(text.strip(), check_deliverability=False, allow_smtputf8=False).ascii_email
    except EmailNotValidError:
        return None


def email_key(email: str) -> str:
    """The normalized spelling by which the account of an address is found. Pure."""
    return unicodedata.normalize("NFKC", email).casefold()


def normalize_name(text: str) -> str | None:
    """The name on one line, without characters that affect the text around it; None if nothing is readable. Pure."""
    if len(text) > _MAX_TYPED_NAME:
        return None
    whole = " ".join(unicodedata.normalize("NFC", text).split())
    seen = any(unicodedata.category(c)[0] in "LN" for c in whole)
    hidden = any(unicodedata.category(c) in _INVISIBLE_CATEGORIES for c in whole) or _BIDI_OR_HIDDEN.search(whole)
    kinds = "".join("m" if unicodedata.category(c) in ("Mn", "Me") else "." for c in whole[: MAX_NAME_LENGTH + 1])
    stacked = "m" * (_MAX_COMBINING_MARKS + 1) in kinds
    return whole if seen and not hidden and not stacked and len(whole) <= MAX_NAME_LENGTH else None


def timezone_choices(present: str) -> Sequence[str]:
    """The names of time zones that a form offers, with the one that it shows."""
    return sorted(zone for zone in available_timezones() if "/" in zone or zone in ("UTC", present))
