"""Sign-ins that begin here and are answered elsewhere: by a passkey's device, or by another site.

Any web process may take the answer: it brings back a secret that is bound to the browser by a cookie, is good for ten
minutes, and for one answer, right or wrong. What was begun by somebody is kept in SQL. A page of sign-in that only may
be used begins nothing there: its challenge says itself, signed, until when it is good, and SQL learns which were used.
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
from starlette.requests import Request

from app.accounts.cookies import cookie_name, set_cookie
from app.accounts.models import Handshake
from app.accounts.secret import is_signature, signature
from app.accounts.tokens import token_hash
from app.db import insert_into, now
from app.errors import Problem
from app.i18n import N_

LASTS = timedelta(minutes=10)
_NAME = "lockstep_handshake"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
_OFFERED = re.compile(r"(?P<said>[\w-]{22}(?P<until>[0-9]{15}))(?P<signature>[\w-]{43})", re.ASCII)
"""A random part, the second until when it is good, and our signature: 80 letters, which base64url knows as 60 bytes."""
_ANSWERED = "answered"


class HandshakeGone(Problem):
    status = 410
    code = "handshake_gone"
    message = N_("This took too long, or was begun in another browser. Try again.")


@dataclass(frozen=True, slots=True)
class Begun:
    """What was kept: whose account it is about, if any, and what the answer has to fit."""

    account_id: str | None
    facts: Mapping[str, str]


async def begin(
    request: Request,
    session: AsyncSession,
    purpose: str,
    key: str,
    facts: Mapping[str, str] | None = None,
    account_id: str | None = None,
) -> None:
    """Keep what an answer with ``key`` has to fit. The browser gets a cookie, unless it has one."""
    browser = _browser(request) or secrets.token_urlsafe(32)
    row = {"purpose": purpose, "account_id": account_id, "facts": json.dumps(dict(facts or {}))}
    hashes = {"key_hash": token_hash(key), "browser_hash": token_hash(browser)}
    session.add(Handshake(**hashes, **row, expires_at=now() + LASTS))
    await session.flush()
    set_cookie(request, _NAME, browser, int(LASTS.total_seconds()))


async def finish(request: Request, session: AsyncSession, purpose: str, key: str) -> Begun:
    """What was begun with this key, in this browser; it is gone from here on. Raises HandshakeGone."""
    browser = _browser(request)
    if browser is None:
        raise HandshakeGone
    mine = delete(Handshake).where(
        Handshake.key_hash == token_hash(key),
        Handshake.browser_hash == token_hash(browser),
        Handshake.purpose == purpose,
        Handshake.expires_at > now(),
    )
    found = (await session.execute(mine.returning(Handshake.account_id, Handshake.facts))).one_or_none()
    if found is None:
        raise HandshakeGone
    return Begun(found.account_id, json.loads(found.facts))


def offer(request: Request) -> str:
    """A challenge that may be answered or not: nothing of it is kept. The browser gets a cookie, unless it has one."""
    browser = _browser(request) or secrets.token_urlsafe(32)
    set_cookie(request, _NAME, browser, int(LASTS.total_seconds()))
    said = f"{secrets.token_urlsafe(16)}{int((now() + LASTS).timestamp()):015d}"
    return f"{said}{signature(request, 'offer', browser, said)}"


async def take(request: Request, session: AsyncSession, challenge: str) -> None:
    """Use a challenge up that was offered to this browser. Raises HandshakeGone."""
    browser, found = _browser(request), _OFFERED.fullmatch(challenge)
    if browser is None or found is None:
        raise HandshakeGone
    if not is_signature(request, found["signature"], "offer", browser, found["said"]):
        raise HandshakeGone
    until = datetime.fromtimestamp(int(found["until"]), UTC)
    if until <= now():
        raise HandshakeGone
    row = {"key_hash": token_hash(challenge), "browser_hash": token_hash(browser), "purpose": _ANSWERED}
    used = insert_into(session, Handshake).values(**row, account_id=None, facts="{}", expires_at=until)
    stored = await session.execute(used.on_conflict_do_nothing().returning(Handshake.key_hash))
    if stored.scalar_one_or_none() is None:
        raise HandshakeGone


def _browser(request: Request) -> str | None:
    token = request.cookies.get(cookie_name(request, _NAME), "")
    return token if _TOKEN.fullmatch(token) else None
