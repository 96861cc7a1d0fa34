"""The cookies of a signed-in browser.

One holds the token of the auth session. The other grants nothing: it tells page scripts which account the browser
belongs to before the server responds, because work is kept in the browser and must not be shown to the next person.
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
"""The account cookie's value after signing out: the browser deletes its stored work. Expiry does not change it."""
_MAX_AGE_S = int(AUTH_SESSION_LIFETIME.total_seconds())
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")


def session_token_hash(cookies: Cookies) -> str | None:
    """The hash of the browser's session token, if it has one."""
    token = cookies.get(SESSION_COOKIE)
    return token_hash(token) if token and _TOKEN.fullmatch(token) else None


def has_session_cookie(asked: Headers) -> bool:
    """Whether a request has the session cookie. Cheap: looks nothing up."""
    return any(f"{SESSION_COOKIE}=" in cookies for cookies in asked.getlist("cookie"))


def set_session_cookie(cookies: Cookies, token: str, max_age_s: int = _MAX_AGE_S) -> None:
    """Store a session token in the browser."""
    cookies.set(SESSION_COOKIE, token, max_age_s)


def clear_session_cookie(cookies: Cookies) -> None:
    cookies.delete(SESSION_COOKIE)


def renew_session_cookie(cookies: Cookies, max_age_s: int) -> None:
    """Extend the session cookie and the account cookie. They end with the session: that is not a sign-out."""
    set_session_cookie(cookies, cookies.get(SESSION_COOKIE) or "", max_age_s)
    if (account := _read_account_cookie(cookies)) is not None:
        _write_account_cookie(cookies, account, max_age_s)


def set_account_cookie(cookies: Cookies, learner_id: str | None) -> None:
    """Tell page scripts which account the browser is signed in to; None means that it was signed out."""
    _write_account_cookie(cookies, learner_marker(learner_id) or SIGNED_OUT)


def sync_account_cookie(cookies: Cookies, learner_id: str | None) -> None:
    """Correct the account cookie if it does not match ``learner_id``.

    An unknown session token means that the session was ended elsewhere, by its owner or an admin: that is a sign-out.
    """
    told = _read_account_cookie(cookies)
    if learner_id is not None or session_token_hash(cookies) is not None:
        if told != (learner_marker(learner_id) or SIGNED_OUT):
            set_account_cookie(cookies, learner_id)
    elif told not in (None, SIGNED_OUT):
        cookies.delete(ACCOUNT_COOKIE, readable=True)


def _read_account_cookie(cookies: Cookies) -> str | None:
    return cookies.get(ACCOUNT_COOKIE)


def _write_account_cookie(cookies: Cookies, account: str, max_age_s: int = _MAX_AGE_S) -> None:
    cookies.set(ACCOUNT_COOKIE, account, max_age_s, readable=True)
