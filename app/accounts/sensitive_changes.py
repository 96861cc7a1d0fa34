"""Whether a browser may make a sensitive change: checked when it begins, and in the transaction that completes it.

In between, the account's owner may have set up a second factor or signed the browser out.
"""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.dependencies import LoginRequired, Principal
from app.accounts.models import Account, AuthSession
from app.accounts.passkeys import list_passkeys
from app.accounts.second_factor import find_authenticator, is_missing, is_strong
from app.accounts.service import lock_account
from app.db import now
from app.errors import PermissionDenied
from app.i18n import N_
from app.security_log import SecurityEvent, record


class StrongerLoginRequired(PermissionDenied):
    """This browser may not make the change. A form shows it with the sentence of its subclass."""


class LoginTooOld(StrongerLoginRequired):
    message = N_("You signed in a while ago. Sign out, sign in again, and come back within ten minutes.")


class PasskeyRequired(StrongerLoginRequired):
    message = N_("Sign in with your passkey first. This site requires it of instructors and admins.")


async def require_known_factors(
    session: AsyncSession, account: Account, method: str, *, lacks_second_factor: bool
) -> None:
    """Check that a session with this method was opened with the factors that the account has.

    Otherwise, a stolen password could add or remove a second factor. Raises PasskeyRequired or LoginTooOld.
    """
    if lacks_second_factor and await list_passkeys(session, account):
        record(SecurityEvent.reauthentication_failed, reason="passkey required")
        raise PasskeyRequired
    if not is_strong(method) and await find_authenticator(session, account) is not None:
        record(SecurityEvent.reauthentication_failed, reason="code required")
        raise LoginTooOld


async def lock_signed_in_account(session: AsyncSession, principal: Principal, *, staff_second_factor: bool) -> Account:
    """Lock the account of a browser for a change that its owner has confirmed, and check the browser again.

    ``staff_second_factor``: whether the operator requires a second factor of instructors and admins.

    Raises LoginRequired if the browser was signed out in the meantime, PasskeyRequired or LoginTooOld.
    """
    account, method = await lock_own_session(session, principal)
    lacks = is_missing(account, method, required_of_staff=staff_second_factor)
    await require_known_factors(session, account, method, lacks_second_factor=lacks)
    return account


async def lock_own_session(session: AsyncSession, principal: Principal) -> tuple[Account, str]:
    """Lock the account of a browser; also returns the method that it signed in with.

    Raises LoginRequired if the browser was signed out in the meantime.
    """
    if principal.account is None or principal.auth_session is None:
        raise LoginRequired
    account = await lock_account(session, principal.account)
    mine = (AuthSession.token_hash == principal.auth_session.token_hash, AuthSession.account_id == account.id)
    method = await session.scalar(select(AuthSession.method).where(*mine, AuthSession.expires_at > now()))
    if method is None:
        raise LoginRequired
    return account, method
