"""A visitor: a learner without an account, known by a random cookie of which SQL holds only the hash.

Reading a page never makes anyone a visitor: only a route that depends on ``LearnerId`` does. Each such request starts
the year again after which the browser forgets.
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
    """The id of the visitor that the browser says it is, if any: 64 hex digits."""
    token = cookies.get(_COOKIE_NAME)
    return token_hash(token) if token and _TOKEN.fullmatch(token) else None


def create_visitor(cookies: Cookies) -> str:
    """Make a visitor of whoever asks: the id. The cookie goes out with the answer."""
    token = secrets.token_urlsafe(32)
    cookies.set(_COOKIE_NAME, token, _MAX_AGE_S)
    return token_hash(token)


def renew_visitor_cookie(cookies: Cookies) -> None:
    """Put off for a year from now that the browser forgets its visitor: whoever comes back stays who they are."""
    cookies.set(_COOKIE_NAME, cookies.get(_COOKIE_NAME) or "", _MAX_AGE_S)


def clear_visitor_cookie(cookies: Cookies) -> None:
    """Take the visitor's cookie back: they have an account now, or their visitor has become somebody's."""
    cookies.delete(_COOKIE_NAME)
