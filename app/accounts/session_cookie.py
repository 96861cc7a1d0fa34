"""The cookies of a browser that is signed in.

One holds the sign-in. The other opens nothing: it tells the pages' script whose browser this is, before any answer of
the server does, because what a learner types is kept in the browser and must not be shown to the next one.
"""

from __future__ import annotations

import re

from starlette.datastructures import Headers

from app.accounts.auth_sessions import AUTH_SESSION_LIFETIME
from app.accounts.tokens import learner_marker, token_hash
from app.web.cookies import Cookies

SESSION_COOKIE = "lockstep_sign_in"
ACCOUNT_COOKIE = "lockstep_account"
SIGNED_OUT = "signed-out"
"""The value of ``ACCOUNT`` after a sign-out, as opposed to an expired sign-in: the browser forgets what it keeps."""
_MAX_AGE_S = int(AUTH_SESSION_LIFETIME.total_seconds())
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")


def session_token_hash(cookies: Cookies) -> str | None:
    """The hash of the sign-in that the browser holds, if any."""
    token = cookies.get(SESSION_COOKIE)
    return token_hash(token) if token and _TOKEN.fullmatch(token) else None


def has_session_cookie(asked: Headers) -> bool:
    """Whether a request has the cookie at all. Cheap: nothing is looked up."""
    return any(f"{SESSION_COOKIE}=" in cookies for cookies in asked.getlist("cookie"))


def set_session_cookie(cookies: Cookies, token: str) -> None:
    """Have the browser hold a sign-in."""
    cookies.set(SESSION_COOKIE, token, _MAX_AGE_S)


def clear_session_cookie(cookies: Cookies) -> None:
    """Take the sign-in back."""
    cookies.delete(SESSION_COOKIE)


def renew_session_cookie(cookies: Cookies) -> None:
    """Have the browser hold the same one for longer, and know for as long whose it is."""
    set_session_cookie(cookies, cookies.get(SESSION_COOKIE) or "")
    if (account := _read_account_cookie(cookies)) is not None:
        _write_account_cookie(cookies, account)


def set_account_cookie(cookies: Cookies, learner_id: str | None) -> None:
    """Tell the pages' script which account the browser is signed in to; None: it was signed out."""
    _write_account_cookie(cookies, learner_marker(learner_id) or SIGNED_OUT)


def sync_account_cookie(cookies: Cookies, learner_id: str | None) -> None:
    """The same, where what the browser has been told is not so.

    A sign-in that is not known any more was ended elsewhere, by its account's owner or an admin: that is a sign-out.
    """
    told = _read_account_cookie(cookies)
    if learner_id is not None or session_token_hash(cookies) is not None:
        if told != (learner_marker(learner_id) or SIGNED_OUT):
            set_account_cookie(cookies, learner_id)
    elif told not in (None, SIGNED_OUT):
        cookies.delete(ACCOUNT_COOKIE, readable=True)


def _read_account_cookie(cookies: Cookies) -> str | None:
    return cookies.get(ACCOUNT_COOKIE)


def _write_account_cookie(cookies: Cookies, account: str) -> None:
    cookies.set(ACCOUNT_COOKIE, account, _MAX_AGE_S, readable=True)
