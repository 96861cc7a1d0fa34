"""The cookie of a browser that is signed in."""

from __future__ import annotations

import re

from starlette.requests import Request

from app.accounts.cookies import cookie_name, set_cookie
from app.accounts.tokens import token_hash

NAME = "lockstep_sign_in"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")


def sign_in_of(request: Request) -> str | None:
    """The hash of the sign-in that the browser holds, if any."""
    token = request.cookies.get(cookie_name(request, NAME), "")
    return token_hash(token) if _TOKEN.fullmatch(token) else None


def keep_sign_in(request: Request, token: str, max_age_s: int) -> None:
    """Have the browser hold a sign-in; an empty token and 0 seconds take it back."""
    set_cookie(request, NAME, token, max_age_s)


def renew_sign_in(request: Request, max_age_s: int) -> None:
    """Have the browser hold the same one for longer."""
    keep_sign_in(request, request.cookies[cookie_name(request, NAME)], max_age_s)
