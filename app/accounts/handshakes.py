"""Sign-ins that begin here and are answered elsewhere: by a passkey's device, or by another site.

SQL keeps what was begun, so that any web process may take the answer: under a secret that the answer brings back,
bound to the browser by a cookie, for ten minutes, and for one answer, right or wrong.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import delete
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.requests import Request

from app.accounts.cookies import cookie_name, set_cookie
from app.accounts.models import Handshake
from app.accounts.tokens import token_hash
from app.db import now
from app.errors import Problem
from app.i18n import N_

LASTS = timedelta(minutes=10)
_NAME = "lockstep_handshake"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")


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


def _browser(request: Request) -> str | None:
    token = request.cookies.get(cookie_name(request, _NAME), "")
    return token if _TOKEN.fullmatch(token) else None
