"""A browser that has signed in to an account is told from a stranger: its tries are its own, and nobody uses them up.

Without this anyone could keep somebody out by typing wrong passwords for their address (OWASP: device cookies). The
cookie holds a random name and, for each account, a signature over both. It tells its reader nothing about the accounts,
opens none, and nobody gets one without a sign-in; who steals it has the few tries of one browser.
"""

from __future__ import annotations

import re
import secrets

from starlette.requests import Request

from app.accounts.attempts import account_key
from app.accounts.cookies import cookie_name, set_cookie
from app.accounts.people import email_key
from app.accounts.secret import is_signature, signature

_NAME = "lockstep_device"
_LASTS_S = 365 * 24 * 3600
"""After the last sign-in."""
_MOST = 8
"""Accounts of one browser: a family's."""
_COOKIE = re.compile(rf"([A-Za-z0-9_-]{{22}})((?:\.[A-Za-z0-9_-]{{43}}){{1,{_MOST}}})")


def device_key(request: Request, what: str, who: str) -> str | None:
    """The key of this browser's own tries on an account; None if it never signed in to it."""
    name, marks = _held(request)
    if not name or not any(is_signature(request, mark, *_marked(name, who)) for mark in marks):
        return None
    return account_key(what, f"{who} in {name}")


def remember(request: Request, *who: str) -> None:
    """This browser has just signed in to the account of that address, or with that passkey."""
    name, marks = _held(request)
    name = name or secrets.token_urlsafe(16)
    new = [signature(request, *_marked(name, each)) for each in who]
    kept = [*new, *(mark for mark in marks if mark not in new)][:_MOST]
    set_cookie(request, _NAME, ".".join([name, *kept]), _LASTS_S)


def _held(request: Request) -> tuple[str, list[str]]:
    found = _COOKIE.fullmatch(request.cookies.get(cookie_name(request, _NAME), ""))
    return (found[1], found[2][1:].split(".")) if found else ("", [])


def _marked(name: str, who: str) -> tuple[str, str, str]:
    return "device", name, email_key(who)
