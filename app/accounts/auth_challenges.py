"""Challenges of sign-ins that start here and are completed by a passkey's device or another site.

Any web process can accept the response. It carries a secret that a cookie binds to the browser; the secret is valid for
ten minutes and for one response, correct or not. A challenge that belongs to an account or to a redirect is stored in
SQL. The sign-in page offers a passkey to every visitor, so its challenge is not stored: it carries its own expiry and
our signature, and SQL records only the challenges that were used.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import delete
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.browser import Browser
from app.accounts.models import Account, AuthChallenge
from app.accounts.tokens import token_hash
from app.db import dialect_insert, now
from app.errors import LockstepError
from app.i18n import N_
from app.web.cookies import Cookies

CHALLENGE_LIFETIME = timedelta(minutes=10)
_COOKIE_NAME = "lockstep_auth_challenge"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
_SIGNED_CHALLENGE = re.compile(r"(?P<said>[\w-]{22}(?P<until>[0-9]{15}))(?P<signature>[\w-]{43})", re.ASCII)
"""A random part, its expiry in seconds, and our signature: 80 characters, which are 60 bytes in base64url."""
_CONSUMED = "answered"


class AuthChallengeExpired(LockstepError):
    status = 410
    message = N_("This took too long, or it was started in another browser. Try again.")


@dataclass(frozen=True, slots=True)
class AuthChallengeContext:
    """What was stored with a challenge: its account, if any, and the data that the response is checked against."""

    account_id: str | None
    data: Mapping[str, str]
    expires_at: datetime


async def create_challenge(
    session: AsyncSession,
    cookies: Cookies,
    purpose: str,
    key: str,
    data: Mapping[str, str] | None = None,
    account_id: str | None = None,
    expires_at: datetime | None = None,
) -> None:
    """Store what the response with ``key`` is checked against. Sets the browser's cookie if it has none.

    ``expires_at``: when the challenge expires that this one renews.
    """
    token = _browser_token(cookies) or secrets.token_urlsafe(32)
    row = {"purpose": purpose, "account_id": account_id, "data": json.dumps(dict(data or {}))}
    hashes = {"key_hash": token_hash(key), "browser_hash": token_hash(token)}
    session.add(AuthChallenge(**hashes, **row, expires_at=expires_at or now() + CHALLENGE_LIFETIME))
    await session.flush()
    cookies.set(_COOKIE_NAME, token, int(CHALLENGE_LIFETIME.total_seconds()))


async def consume_challenge(session: AsyncSession, cookies: Cookies, purpose: str, key: str) -> AuthChallengeContext:
    """Delete and return the challenge that this browser started with ``key``. Raises AuthChallengeExpired."""
    token = _browser_token(cookies)
    if token is None:
        raise AuthChallengeExpired
    mine = delete(AuthChallenge).where(
        AuthChallenge.key_hash == token_hash(key),
        AuthChallenge.browser_hash == token_hash(token),
        AuthChallenge.purpose == purpose,
        AuthChallenge.expires_at > now(),
    )
    told = (AuthChallenge.account_id, AuthChallenge.data, AuthChallenge.expires_at)
    found = (await session.execute(mine.returning(*told))).one_or_none()
    if found is None:
        raise AuthChallengeExpired
    return AuthChallengeContext(found.account_id, json.loads(found.data), found.expires_at)


async def revoke_challenges(session: AsyncSession, account: Account) -> None:
    """Invalidate all open challenges of the account, as after a password change."""
    await session.execute(delete(AuthChallenge).where(AuthChallenge.account_id == account.id))


def issue_signed_challenge(browser: Browser) -> str:
    """A challenge that is signed instead of stored. Sets the browser's cookie if it has none."""
    token = _browser_token(browser.cookies) or secrets.token_urlsafe(32)
    browser.cookies.set(_COOKIE_NAME, token, int(CHALLENGE_LIFETIME.total_seconds()))
    said = f"{secrets.token_urlsafe(16)}{int((now() + CHALLENGE_LIFETIME).timestamp()):015d}"
    return f"{said}{browser.signer.sign('offer', token, said)}"


async def consume_signed_challenge(session: AsyncSession, browser: Browser, challenge: str) -> None:
    """Mark a challenge that was issued to this browser as used. Raises AuthChallengeExpired."""
    token, found = _browser_token(browser.cookies), _SIGNED_CHALLENGE.fullmatch(challenge)
    if token is None or found is None:
        raise AuthChallengeExpired
    if not browser.signer.verify(found["signature"], "offer", token, found["said"]):
        raise AuthChallengeExpired
    until = datetime.fromtimestamp(int(found["until"]), UTC)
    if until <= now():
        raise AuthChallengeExpired
    row = {"key_hash": token_hash(challenge), "browser_hash": token_hash(token), "purpose": _CONSUMED}
    used = dialect_insert(session, AuthChallenge).values(**row, account_id=None, data="{}", expires_at=until)
    stored = await session.execute(used.on_conflict_do_nothing().returning(AuthChallenge.key_hash))
    if stored.scalar_one_or_none() is None:
        raise AuthChallengeExpired


def _browser_token(cookies: Cookies) -> str | None:
    token = cookies.get(_COOKIE_NAME)
    return token if token and _TOKEN.fullmatch(token) else None
