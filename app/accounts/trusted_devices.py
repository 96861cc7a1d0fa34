"""Trusted devices: the attempts of a browser that has signed in to an account before are counted separately.

Otherwise anyone could lock an owner out by typing wrong passwords for their address (OWASP: device cookies). The cookie
holds a random name and, for each account, a signature over both. It does not reveal the accounts, signs in to none, and
is only issued after a sign-in; if it is stolen, it gives the thief only the few attempts of one browser.
"""

from __future__ import annotations

import re
import secrets

from app.accounts.browser import Browser
from app.accounts.validation import email_key

_COOKIE_NAME = "lockstep_device"
_MAX_AGE_S = 365 * 24 * 3600
"""Counted from the last sign-in."""
_MAX_ACCOUNTS = 8
"""Accounts remembered per browser: a family's."""
_COOKIE_VALUE = re.compile(rf"([A-Za-z0-9_-]{{22}})((?:\.[A-Za-z0-9_-]{{43}}){{1,{_MAX_ACCOUNTS}}})")


def trusted_device(browser: Browser, who: str) -> str | None:
    """The rate-limit key of this account and browser; None if the browser never signed in to the account."""
    name, marks = _read_cookie(browser)
    if not name or not any(browser.signer.verify(mark, *_signed_parts(name, who)) for mark in marks):
        return None
    return f"{who} in {name}"


def trust_device(browser: Browser, *who: str) -> None:
    """Remember that this browser signed in to the account with this address or passkey."""
    name, marks = _read_cookie(browser)
    name = name or secrets.token_urlsafe(16)
    new = [browser.signer.sign(*_signed_parts(name, each)) for each in who]
    kept = [*new, *(mark for mark in marks if mark not in new)][:_MAX_ACCOUNTS]
    browser.cookies.set(_COOKIE_NAME, ".".join([name, *kept]), _MAX_AGE_S)


def _read_cookie(browser: Browser) -> tuple[str, list[str]]:
    found = _COOKIE_VALUE.fullmatch(browser.cookies.get(_COOKIE_NAME) or "")
    return (found[1], found[2][1:].split(".")) if found else ("", [])


def _signed_parts(name: str, who: str) -> tuple[str, str, str]:
    return "device", name, email_key(who)
