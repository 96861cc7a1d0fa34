"""Cookies that are set while a request is answered."""

from __future__ import annotations

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.web.cookies import browser_cookie_name, set_cookie_value
from app.web.dependencies import SETTINGS

_SCOPE_KEY = "lockstep.cookies"


def cookie_name(request: Request, name: str) -> str:
    """The name as the browser knows it."""
    return browser_cookie_name(name, secure=_secure(request))


def set_cookie(request: Request, name: str, value: str, max_age_s: int, *, readable: bool = False) -> None:
    """Send a cookie with whatever the answer is, an error page too; ``max_age_s`` of 0 takes it back."""
    cookie = set_cookie_value(name, value, max_age_s, secure=_secure(request), readable=readable)
    request.scope[_SCOPE_KEY][name] = cookie


class CookieMiddleware:
    """Send the cookies that were set while a request was answered."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        cookies: dict[str, str] = {}

        async def send_marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message.setdefault("headers", [])
                headers.extend((b"set-cookie", cookie.encode()) for cookie in cookies.values())
            await send(message)

        await self._app({**scope, _SCOPE_KEY: cookies}, receive, send_marked)


def _secure(request: Request) -> bool:
    return request.url.scheme == "https" or SETTINGS.get(request.app).secure
