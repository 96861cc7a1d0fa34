"""Accepts changes only from our own pages, by checking where the browser says a request comes from.

Sec-Fetch-Site decides if the browser sends it (in any secure context), otherwise Origin. There are no tokens, so pages
can be cached for everyone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from app.errors import CrossSiteRequest
from app.security_log import SecurityEvent, record

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


def is_same_origin(method: str, headers: Mapping[str, str], public_url: str) -> bool:
    """True if the request only reads, or was sent by one of our own pages or the user."""
    if method in SAFE_METHODS:
        return True
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = headers.get("origin", "")
    if public_url and _host(origin) == _host(public_url):
        return origin == public_url  # including the scheme: anyone on the network can forge pages over http
    host = headers.get("host", "")
    return bool(host) and _host(origin) == host


def _host(origin: str) -> str:
    """The host and port of an origin; empty if it is not a URL."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


class SameOriginOnly:
    """Rejects changes from other sites with CrossSiteRequest."""

    def __init__(self, app: ASGIApp, *, public_url: str, but: str = "") -> None:
        """``but`` is a pattern of paths that anyone may post to; they must not use cookies."""
        self._app = app
        self._public_url = public_url
        self._but = re.compile(but) if but else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not (self._but and self._but.fullmatch(scope["path"])):
            headers = Headers(scope=scope)
            said_twice = any(len(headers.getlist(name)) > 1 for name in ("origin", "sec-fetch-site"))
            refused = said_twice and scope["method"] not in SAFE_METHODS
            if refused or not is_same_origin(scope["method"], headers, self._public_url):
                record(SecurityEvent.cross_site_refused)
                raise CrossSiteRequest
        await self._app(scope, receive, send)
