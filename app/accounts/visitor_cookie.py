"""A visitor is a learner without an account, recognized by a random cookie of which SQL holds only a hash.

Reading a page never creates a visitor. A route that depends on ``LearnerId`` does, and each such request makes the
cookie last for another year.
"""

from __future__ import annotations

import re
import secrets

from app.accounts.tokens import token_hash
from app.web.cookies import Cookies

_MAX_AGE_S = 365 * 24 * 3600
_COOKIE_NAME = "lockstep_visitor"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")


def read_visitor_id(cookies: Cookies) -> str | None:
    """The visitor ID that belongs to the browser's cookie, if any: 64 hex digits."""
    token = cookies.get(_COOKIE_NAME)
    return token_hash(token) if token and _TOKEN.fullmatch(token) else None


def create_visitor(cookies: Cookies) -> str:
    """Create a visitor and send its cookie with the response. Returns the ID."""
    token = secrets.token_urlsafe(32)
    cookies.set(_COOKIE_NAME, token, _MAX_AGE_S)
    return token_hash(token)


def renew_visitor_cookie(cookies: Cookies) -> None:
    """Make the cookie last for another year."""
    cookies.set(_COOKIE_NAME, cookies.get(_COOKIE_NAME) or "", _MAX_AGE_S)


def clear_visitor_cookie(cookies: Cookies) -> None:
    """Delete the visitor cookie: the visitor has been merged into an account."""
    cookies.delete(_COOKIE_NAME)
