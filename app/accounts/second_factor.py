"""The second step of a sign-in: a code of an authenticator app (TOTP, RFC 6238), or a recovery code.

A passkey verifies its user and needs no second step. Each code works once: the time step of the last one is kept, and a
recovery code is deleted. SQL holds only the hashes of recovery codes; the secret of the app has to be readable.
"""

from __future__ import annotations

import base64
import secrets
from enum import StrEnum

import pyotp
from sqlalchemy import delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.auth_challenges import revoke_challenges
from app.accounts.email_links import revoke_links
from app.accounts.models import Account, ApiToken, Authenticator, AuthSession, RecoveryCode, Role
from app.accounts.service import lock_account
from app.accounts.tokens import token_hash
from app.db import now
from app.i18n import N_

WRONG_CODE = N_("This code is not correct, has expired, or was already used. Enter the one that the app shows now.")
STEP_S = 30
RECOVERY_CODES = 10
_RECOVERY_CODE_BYTES = 15
"""As they are random and have more than 112 bits, one fast hash is enough."""
_SUFFIX = "+totp"
_PASSKEY, _REMOVED_PASSKEY = "passkey", "old passkey"


class CodeKind(StrEnum):
    """Where a code comes from."""

    app = "app"
    recovery = "recovery code"


def is_strong(method: str) -> bool:
    """Whether a session with this method was opened with more than a password, a link, or another site. Pure."""
    return method == _PASSKEY or method.endswith(_SUFFIX)


def with_code(method: str) -> str:
    """The method of a session that was opened with a code too. Pure."""
    return method if is_strong(method) else method + _SUFFIX


def is_missing(account: Account, method: str, *, required_of_staff: bool) -> bool:
    """Whether the session of a member of staff lacks the second factor that the operator requires. Pure."""
    return required_of_staff and account.role != Role.learner and not is_strong(method)


def provisioning_uri(account: Account, secret: str) -> str:
    """The URI in the QR code for an authenticator app. Pure."""
    return pyotp.TOTP(secret).provisioning_uri(name=account.email, issuer_name="Lockstep")


def matching_step(secret: str, code: str, at_s: float) -> int | None:
    """The time step of the code: the current one, or a neighbor, because clocks differ. None if it is wrong. Pure."""
    current = int(at_s) // STEP_S
    totp = pyotp.HOTP(secret)
    digits = "".join(code.split())
    return next((step for step in (current, current - 1, current + 1) if totp.verify(digits, step)), None)


async def find_authenticator(session: AsyncSession, account: Account) -> Authenticator | None:
    return await session.get(Authenticator, account.id)


async def count_recovery_codes(session: AsyncSession, account: Account) -> int:
    """How many codes are left."""
    mine = select(func.count()).select_from(RecoveryCode).where(RecoveryCode.account_id == account.id)
    return await session.scalar(mine) or 0


async def add_authenticator(session: AsyncSession, account: Account, secret: str, code: str) -> list[str] | None:
    """Store the app that shows this code, instead of an earlier one. Returns recovery codes; None if it is wrong.

    What was begun without it is invalid: links in emails, other apps, passkeys and providers.
    """
    step = matching_step(secret, code, now().timestamp())
    if step is None:
        return None
    account = await lock_account(session, account)
    await remove_authenticator(session, account)
    await revoke_links(session, account)
    await revoke_challenges(session, account)
    session.add(Authenticator(account_id=account.id, secret=secret, last_step=step, created_at=now()))
    codes = [
        base64.b32encode(secrets.token_bytes(_RECOVERY_CODE_BYTES)).decode().lower() for _ in range(RECOVERY_CODES)
    ]
    session.add_all(RecoveryCode(code_hash=_code_hash(account, code), account_id=account.id) for code in codes)
    await session.flush()
    return ["-".join(code[start : start + 4] for start in range(0, len(code), 4)) for code in codes]


async def use_code(session: AsyncSession, account: Account, code: str) -> CodeKind | None:
    """Use up a code of the app or a recovery code. None if it is wrong or was used before."""
    account = await lock_account(session, account)
    found = await session.get(Authenticator, account.id, populate_existing=True)
    if found is None:
        return None
    step = matching_step(found.secret, code, now().timestamp())
    if step is not None and step > found.last_step:
        found.last_step = step
        return CodeKind.app
    mine = delete(RecoveryCode).where(
        RecoveryCode.code_hash == _code_hash(account, code), RecoveryCode.account_id == account.id
    )
    used = (await session.execute(mine.returning(RecoveryCode.code_hash))).scalar_one_or_none()
    return None if used is None else CodeKind.recovery


async def remove_authenticator(session: AsyncSession, account: Account) -> None:
    """Remove the app and its recovery codes.

    Sessions that were opened with a code, and API tokens that such sessions created, count as opened without one.
    """
    for table in (Authenticator, RecoveryCode):
        await session.execute(delete(table).where(table.account_id == account.id))
    for opened in (AuthSession, ApiToken):
        mine = update(opened).where(opened.account_id == account.id, opened.method.endswith(_SUFFIX))
        await session.execute(mine.values(method=func.replace(opened.method, _SUFFIX, "")))


async def forget_passkeys(session: AsyncSession, account: Account) -> None:
    """Note that the account has no passkey any more.

    Sessions that were opened with one, and API tokens that such sessions created, count as opened without one.
    """
    for opened in (AuthSession, ApiToken):
        mine = update(opened).where(opened.account_id == account.id, opened.method == _PASSKEY)
        await session.execute(mine.values(method=_REMOVED_PASSKEY))


async def strengthen_session(session: AsyncSession, hashed: str, method: str) -> None:
    """Note that the browser whose token has this hash has just shown a second factor."""
    await session.execute(update(AuthSession).where(AuthSession.token_hash == hashed).values(method=method))


def _code_hash(account: Account, code: str) -> str:
    plain = "".join(c for c in code.lower() if c.isalnum())
    return token_hash(f"recovery {account.id} {plain}")
