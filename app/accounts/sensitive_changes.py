"""Whether a browser may make a sensitive change: checked when it begins, and in the transaction that completes it.

In between, the account's owner may have set up a second factor or signed the browser out.
"""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.requests import Request

from app.accounts.dependencies import LoginRequired, get_principal
from app.accounts.models import Account, AuthSession
from app.accounts.passkeys import list_passkeys
from app.accounts.second_factor import find_authenticator, is_missing, is_strong
from app.accounts.service import lock_account
from app.db import now
from app.errors import PermissionDenied
from app.i18n import N_
from app.security_log import SecurityEvent, record
from app.web.dependencies import SETTINGS


class LoginTooOld(PermissionDenied):
    message = N_("You signed in a while ago. Sign out, sign in again, and come back within ten minutes.")


class PasskeyRequired(PermissionDenied):
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


async def lock_for_sensitive_change(request: Request, session: AsyncSession) -> Account:
    """Lock the account of this browser for a change that its owner has confirmed, and check it again.

    Raises LoginRequired if the browser was signed out in the meantime, PasskeyRequired or LoginTooOld.
    """
    principal = await get_principal(request)
    if principal.account is None or principal.auth_session is None:
        raise LoginRequired
    account = await lock_account(session, principal.account)
    mine = (AuthSession.token_hash == principal.auth_session.token_hash, AuthSession.account_id == account.id)
    method = await session.scalar(select(AuthSession.method).where(*mine, AuthSession.expires_at > now()))
    if method is None:
        raise LoginRequired
    lacks = is_missing(account, method, required_of_staff=SETTINGS.get(request.app).staff_second_factor)
    await require_known_factors(session, account, method, lacks_second_factor=lacks)
    return account
