"""Signing a browser in and out: what happens to its cookies, and to what it did before."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncSession
from starlette.requests import Request

from app.accounts import flash
from app.accounts.auth_sessions import AUTH_SESSION_LIFETIME, create_auth_session, revoke_auth_session
from app.accounts.merge import MERGERS, MergeResult, merge_visitor
from app.accounts.models import Account
from app.accounts.session_cookie import session_token_hash, set_account_cookie, set_session_cookie
from app.accounts.trusted_devices import trust_device
from app.accounts.visitor_cookie import clear_visitor_cookie, read_visitor_id
from app.errors import PermissionDenied
from app.i18n import N_


class AccountDisabled(PermissionDenied):
    code = "account_disabled"
    message = N_("The operator of this site closed this account.")


@dataclass(frozen=True, slots=True)
class Login:
    """A sign-in that has been stored; ``open_door`` gives it to the browser once that is committed."""

    token: str
    email: str
    learner_id: str
    merged: MergeResult


async def log_in(request: Request, session: AsyncSession, account: Account, *, method: str, new: bool = False) -> Login:
    """Sign the browser in, with a token it never had, and make what it did the account's. Raises AccountDisabled.

    ``new``: this is the first time anyone gets into the account.
    """
    if account.disabled_at is not None:
        raise AccountDisabled
    if (before := session_token_hash(request)) is not None:
        await revoke_auth_session(session, before)
    visitor, merged = read_visitor_id(request), MergeResult()
    if visitor is not None:
        merged = await merge_visitor(session, visitor, account, MERGERS.get(request.app), adopt=new)
    user_agent, ip_address = request.headers.get("user-agent", ""), request.client.host if request.client else ""
    token = await create_auth_session(session, account, method=method, user_agent=user_agent, ip_address=ip_address)
    return Login(token, account.email, account.learner_id, merged)


def set_login_cookies(request: Request, entrance: Login, *passkey: str, what: str = "signed_in") -> None:
    """Give the browser its cookies, take the visitor's back, and have it told ``what``, and what came in."""
    set_session_cookie(request, entrance.token, int(AUTH_SESSION_LIFETIME.total_seconds()))
    set_account_cookie(request, entrance.learner_id)
    trust_device(request, entrance.email, *passkey)
    if read_visitor_id(request) is not None:
        clear_visitor_cookie(request)
    flash.add(request, what, **{"adopted": 1} if entrance.merged.adopted else dict(entrance.merged.brought))


async def log_out(request: Request, session: AsyncSession) -> None:
    """Sign the browser out."""
    if (held := session_token_hash(request)) is not None:
        await revoke_auth_session(session, held)
    clear_login_cookies(request)


def clear_login_cookies(request: Request) -> None:
    """Take the sign-in back from the browser, and have its pages forget what they keep there."""
    set_session_cookie(request, "", 0)
    set_account_cookie(request, None)
