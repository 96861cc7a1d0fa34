"""A visitor: a learner without an account, known by a random cookie of which SQL holds only the hash.

A route that needs one asks for ``Visitor``; a newcomer's cookie then goes out with the answer. Routes that can do
without ask for ``KnownVisitor``, so reading a page never makes a visitor of anyone.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from typing import Annotated

from fastapi import Depends
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_A_YEAR_S = 365 * 24 * 3600
_NAME = "lockstep_visitor"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
_COOKIE = "lockstep.visitor_cookie"


def visitor_id(token: str) -> str:
    """What SQL knows a visitor by: 64 hex digits."""
    return hashlib.sha256(token.encode()).hexdigest()


def cookie_name(request: Request) -> str:
    """Under https the name binds the cookie to this host and to encrypted connections."""
    return f"__Host-{_NAME}" if _secure(request) else _NAME


async def known_visitor(request: Request) -> str | None:
    """The id of whoever asks, if they have been here before."""
    token = request.cookies.get(cookie_name(request), "")
    return visitor_id(token) if _TOKEN.fullmatch(token) else None


async def welcomed_visitor(request: Request) -> str:
    """The id of whoever asks; a newcomer gets a cookie."""
    if (known := await known_visitor(request)) is not None:
        return known
    token = secrets.token_urlsafe(32)
    attributes = f"Path=/; Max-Age={_A_YEAR_S}; HttpOnly; SameSite=Lax" + ("; Secure" if _secure(request) else "")
    request.scope[_COOKIE].append(f"{cookie_name(request)}={token}; {attributes}")
    return visitor_id(token)


class VisitorCookies:
    """Send a newcomer's cookie with whatever the answer is."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        cookies: list[str] = []

        async def send_marked(message: Message) -> None:
            if cookies and message["type"] == "http.response.start":
                message.setdefault("headers", []).append((b"set-cookie", cookies[0].encode()))
            await send(message)

        await self._app({**scope, _COOKIE: cookies}, receive, send_marked)


def _secure(request: Request) -> bool:
    return request.url.scheme == "https" or bool(request.app.state.settings.secure)


KnownVisitor = Annotated[str | None, Depends(known_visitor)]
Visitor = Annotated[str, Depends(welcomed_visitor)]
