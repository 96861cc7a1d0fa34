"""A visitor: a learner without an account, known by a random cookie of which SQL holds only the hash.

Reading a page never makes a visitor of anyone: only a route that asks for ``Learner`` (``accounts.current``) does, and
each time it is asked the year begins anew after which the browser forgets.
"""

from __future__ import annotations

import re
import secrets

from starlette.requests import Request

from app.accounts.cookies import cookie_name, set_cookie
from app.accounts.tokens import token_hash

_MAX_AGE_S = 365 * 24 * 3600
_COOKIE_NAME = "lockstep_visitor"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")


def read_visitor_id(request: Request) -> str | None:
    """The id of the visitor that the browser says it is, if any: 64 hex digits."""
    token = request.cookies.get(cookie_name(request, _COOKIE_NAME), "")
    return token_hash(token) if _TOKEN.fullmatch(token) else None


def create_visitor(request: Request) -> str:
    """Make a visitor of whoever asks: the id. The cookie goes out with the answer."""
    token = secrets.token_urlsafe(32)
    set_cookie(request, _COOKIE_NAME, token, _MAX_AGE_S)
    return token_hash(token)


def renew_visitor_cookie(request: Request) -> None:
    """Put off for a year from now that the browser forgets its visitor: whoever comes back stays who they are."""
    set_cookie(request, _COOKIE_NAME, request.cookies[cookie_name(request, _COOKIE_NAME)], _MAX_AGE_S)


def clear_visitor_cookie(request: Request) -> None:
    """Take the visitor's cookie back: they have an account now, or their visitor has become somebody's."""
    set_cookie(request, _COOKIE_NAME, "", 0)
