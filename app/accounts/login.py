"""Signing a browser in and out: its cookies, and the work it did as a visitor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts import flash
from app.accounts.auth_sessions import create_auth_session, revoke_auth_session
from app.accounts.browser import Browser
from app.accounts.merge import Merger, MergeResult, merge_visitor
from app.accounts.models import Account, Role
from app.accounts.second_factor import find_authenticator, is_missing, is_strong
from app.accounts.session_cookie import clear_session_cookie, session_token_hash, set_account_cookie, set_session_cookie
from app.accounts.trusted_devices import trust_device
from app.accounts.visitor_cookie import clear_visitor_cookie, read_visitor_id
from app.errors import PermissionDenied
from app.i18n import N_
from app.security_log import SecurityEvent, record
from app.site_switches import Switch, UnderMaintenance, is_on
from app.web.cookies import Cookies


class AccountDisabled(PermissionDenied):
    message = N_("The operator of this site closed this account.")


@dataclass(frozen=True, slots=True)
class Login:
    """A stored auth session. ``set_login_cookies`` gives it to the browser once the transaction is committed."""

    token: str
    account_id: str
    email: str
    learner_id: str
    merged: MergeResult
    method: str
    pending: bool = False
    """Whether the second step is still to come."""
    lacks_second_factor: bool = False
    """Whether a member of staff still has to set up what the operator requires, if the operator does."""


async def log_in(
    session: AsyncSession,
    browser: Browser,
    account: Account,
    mergers: Sequence[Merger],
    *,
    method: str,
    new: bool = False,
) -> Login:
    """Sign in with a new token, and merge the visitor's work into the account.

    Raises AccountDisabled or, during maintenance, UnderMaintenance.

    If the account has an authenticator app and the method is not strong, the sign-in is pending: it waits for a code.
    ``new``: this is the account's first sign-in.
    """
    if account.disabled_at is not None:
        record(SecurityEvent.sign_in_failed, account=account.id, reason="account disabled")
        raise AccountDisabled
    if account.role != Role.admin and await is_on(session, Switch.maintenance):
        raise UnderMaintenance
    if (before := session_token_hash(browser.cookies)) is not None:
        await revoke_auth_session(session, before)
    pending = not is_strong(method) and await find_authenticator(session, account) is not None
    visitor, merged = None if pending else read_visitor_id(browser.cookies), MergeResult()
    if visitor is not None:
        merged = await merge_visitor(session, visitor, account, mergers, adopt=new)
    token = await create_auth_session(
        session,
        account,
        method=method,
        user_agent=browser.user_agent,
        ip_address=browser.ip_address,
        pending=pending,
    )
    lacks = is_missing(account, method, required_of_staff=True)
    return Login(token, account.id, account.email, account.learner_id, merged, method, pending, lacks)


def set_login_cookies(browser: Browser, login: Login, *passkey: str, what: str = "signed_in", reason: str = "") -> None:
    """Log the sign-in, set its cookies, delete the visitor's, and flash ``what`` and what work was imported.

    The log gives ``reason``, or the method.
    """
    set_session_cookie(browser.cookies, login.token)
    if login.pending:
        record(SecurityEvent.second_step_asked, account=login.account_id, reason=login.method)
        return
    record(SecurityEvent.sign_in, account=login.account_id, reason=reason or login.method)
    set_account_cookie(browser.cookies, login.learner_id)
    trust_device(browser, login.email, *passkey)
    if read_visitor_id(browser.cookies) is not None:
        clear_visitor_cookie(browser.cookies)
    flash.add(browser.cookies, what, **{"adopted": 1} if login.merged.adopted else dict(login.merged.moved_counts))


async def log_out(session: AsyncSession, cookies: Cookies) -> None:
    """Sign the browser out."""
    if (held := session_token_hash(cookies)) is not None:
        await revoke_auth_session(session, held)
        record(SecurityEvent.sign_out)
    clear_login_cookies(cookies)


def clear_login_cookies(cookies: Cookies) -> None:
    """Delete the login cookies and make the browser's pages forget stored data."""
    clear_session_cookie(cookies)
    set_account_cookie(cookies, None)
