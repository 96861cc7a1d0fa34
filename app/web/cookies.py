"""Cookies: SameSite, HttpOnly except for one and, under HTTPS, bound to the host and TLS by their names.

Routes get the cookies of their request as ``cookies: CookiesDep``. ``CookieMiddleware`` sends those that were set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from fastapi import Depends
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.web.dependencies import SETTINGS, of_request

_SCOPE_KEY = "lockstep.cookies"


def browser_cookie_name(name: str, *, secure: bool) -> str:
    """The name as the browser knows it. ``secure``: learners use HTTPS. Pure."""
    return f"__Host-{name}" if secure else name


def set_cookie_value(name: str, value: str, max_age_s: int, *, secure: bool, readable: bool = False) -> str:
    """The value of ``Set-Cookie``. A ``max_age_s`` of 0 deletes the cookie. ``readable``: scripts can read it. Pure."""
    attributes = f"Path=/; Max-Age={max_age_s}; SameSite=Lax"
    attributes += ("" if readable else "; HttpOnly") + ("; Secure" if secure else "")
    return f"{browser_cookie_name(name, secure=secure)}={value}; {attributes}"


class Cookies:
    """The cookies that a request sent, and those that its response sets."""

    def __init__(self, received: Mapping[str, str], set_cookies: dict[str, str], *, secure: bool) -> None:
        self._received = received
        self._set_cookies = set_cookies
        self._secure = secure

    def get(self, name: str) -> str | None:
        """The value that the request sent."""
        return self._received.get(browser_cookie_name(name, secure=self._secure))

    @property
    def changed(self) -> bool:
        """Whether the response sets any."""
        return bool(self._set_cookies)

    def set(self, name: str, value: str, max_age_s: int, *, readable: bool = False) -> None:
        """Send a cookie with the response, even if that is an error page."""
        self._set_cookies[name] = set_cookie_value(name, value, max_age_s, secure=self._secure, readable=readable)

    def delete(self, name: str, *, readable: bool = False) -> None:
        """Have the browser delete a cookie."""
        self.set(name, "", 0, readable=readable)


def request_cookies(request: Request) -> Cookies:
    """The cookies of a request and of its response."""
    return _cookies(request, request.scope[_SCOPE_KEY])


def received_cookies(request: Request) -> Cookies:
    """The cookies of a request, for middleware around ``CookieMiddleware``: it can read them, but not set any."""
    return _cookies(request, {})


def _cookies(request: Request, set_cookies: dict[str, str]) -> Cookies:
    secure = request.scope["scheme"] == "https" or SETTINGS.get(request.app).secure
    return Cookies(request.cookies, set_cookies, secure=secure)


CookiesDep = Annotated[Cookies, Depends(of_request(request_cookies))]


class CookieMiddleware:
    """Sends the cookies that were set while a request was handled."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        set_cookies: dict[str, str] = {}

        async def send_with_cookies(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message.setdefault("headers", [])
                headers.extend((b"set-cookie", cookie.encode()) for cookie in set_cookies.values())
            await send(message)

        await self._app({**scope, _SCOPE_KEY: set_cookies}, receive, send_with_cookies)
