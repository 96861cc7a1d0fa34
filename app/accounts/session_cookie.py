"""The cookies of a browser that is signed in.

One holds the sign-in. The other opens nothing: it tells the pages' script whose browser this is, before any answer of
the server does, because what a learner types is kept in the browser and must not be shown to the next one.
"""

from __future__ import annotations

import re

from starlette.datastructures import Headers
from starlette.requests import Request

from app.accounts.auth_sessions import AUTH_SESSION_LIFETIME
from app.accounts.cookies import cookie_name, set_cookie
from app.accounts.tokens import learner_marker, token_hash

SESSION_COOKIE = "lockstep_sign_in"
ACCOUNT_COOKIE = "lockstep_account"
SIGNED_OUT = "signed-out"
"""The value of ``ACCOUNT`` after a sign-out, as opposed to an expired sign-in: the browser forgets what it keeps."""
_ACCOUNT_MAX_AGE_S = int(AUTH_SESSION_LIFETIME.total_seconds())
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")


def session_token_hash(request: Request) -> str | None:
    """The hash of the sign-in that the browser holds, if any."""
    token = request.cookies.get(cookie_name(request, SESSION_COOKIE), "")
    return token_hash(token) if _TOKEN.fullmatch(token) else None


def has_session_cookie(asked: Headers) -> bool:
    """Whether a request has the cookie at all. Cheap: nothing is looked up."""
    return any(f"{SESSION_COOKIE}=" in cookies for cookies in asked.getlist("cookie"))


def set_session_cookie(request: Request, token: str, max_age_s: int) -> None:
    """Have the browser hold a sign-in; an empty token and 0 seconds take it back."""
    set_cookie(request, SESSION_COOKIE, token, max_age_s)


def renew_session_cookie(request: Request, max_age_s: int) -> None:
    """Have the browser hold the same one for longer, and know for as long whose it is."""
    set_session_cookie(request, request.cookies[cookie_name(request, SESSION_COOKIE)], max_age_s)
    if (account := _read_account_cookie(request)) is not None:
        _write_account_cookie(request, account)


def set_account_cookie(request: Request, learner_id: str | None) -> None:
    """Tell the pages' script which account the browser is signed in to; None: it was signed out."""
    _write_account_cookie(request, learner_marker(learner_id) or SIGNED_OUT)


def sync_account_cookie(request: Request, learner_id: str | None) -> None:
    """The same, where what the browser has been told is not so.

    A sign-in that is not known any more was ended elsewhere, by its account's owner or an admin: that is a sign-out.
    """
    told = _read_account_cookie(request)
    if learner_id is not None or session_token_hash(request) is not None:
        if told != (learner_marker(learner_id) or SIGNED_OUT):
            set_account_cookie(request, learner_id)
    elif told not in (None, SIGNED_OUT):
        set_cookie(request, ACCOUNT_COOKIE, "", 0, readable=True)


def _read_account_cookie(request: Request) -> str | None:
    return request.cookies.get(cookie_name(request, ACCOUNT_COOKIE))


def _write_account_cookie(request: Request, account: str) -> None:
    set_cookie(request, ACCOUNT_COOKIE, account, _ACCOUNT_MAX_AGE_S, readable=True)
