"""The cookies of a browser that is signed in.

One holds the sign-in. The other opens nothing: it tells the pages' script whose browser this is, before any answer of
the server does, because what a learner types is kept in the browser and must not be shown to the next one.
"""

from __future__ import annotations

import re

from starlette.datastructures import Headers
from starlette.requests import Request

from app.accounts.cookies import cookie_name, set_cookie
from app.accounts.sign_ins import LASTS
from app.accounts.tokens import marker, token_hash

NAME = "lockstep_sign_in"
ACCOUNT = "lockstep_account"
SIGNED_OUT = "signed-out"
"""The value of ``ACCOUNT`` after a sign-out, as opposed to an expired sign-in: the browser forgets what it keeps."""
_ACCOUNT_LASTS_S = int(LASTS.total_seconds())
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")


def sign_in_of(request: Request) -> str | None:
    """The hash of the sign-in that the browser holds, if any."""
    token = request.cookies.get(cookie_name(request, NAME), "")
    return token_hash(token) if _TOKEN.fullmatch(token) else None


def may_be_signed_in(asked: Headers) -> bool:
    """Whether a request has the cookie at all. Cheap: nothing is looked up."""
    return any(f"{NAME}=" in cookies for cookies in asked.getlist("cookie"))


def keep_sign_in(request: Request, token: str, max_age_s: int) -> None:
    """Have the browser hold a sign-in; an empty token and 0 seconds take it back."""
    set_cookie(request, NAME, token, max_age_s)


def renew_sign_in(request: Request, max_age_s: int) -> None:
    """Have the browser hold the same one for longer, and know for as long whose it is."""
    keep_sign_in(request, request.cookies[cookie_name(request, NAME)], max_age_s)
    if (account := _account_of(request)) is not None:
        _keep_account(request, account)


def tell_account(request: Request, learner_id: str | None) -> None:
    """Tell the pages' script which account the browser is signed in to; None: it was signed out."""
    _keep_account(request, marker(learner_id) or SIGNED_OUT)


def correct_account(request: Request, learner_id: str | None) -> None:
    """The same, where what the browser has been told is not so.

    A sign-in that is not known any more was ended elsewhere, by its account's owner or an admin: that is a sign-out.
    """
    told = _account_of(request)
    if learner_id is not None or sign_in_of(request) is not None:
        if told != (marker(learner_id) or SIGNED_OUT):
            tell_account(request, learner_id)
    elif told not in (None, SIGNED_OUT):
        set_cookie(request, ACCOUNT, "", 0, readable=True)


def _account_of(request: Request) -> str | None:
    return request.cookies.get(cookie_name(request, ACCOUNT))


def _keep_account(request: Request, account: str) -> None:
    set_cookie(request, ACCOUNT, account, _ACCOUNT_LASTS_S, readable=True)
