"""Which names in a request's Host header the site answers to."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send


class TrustedHosts(TrustedHostMiddleware):
    """Rejects requests for other names: one of another site may lead here, and its pages would share our origin.

    Probes of load balancers name the address of the machine or container instead, or nothing in HTTP/1.0. They get the
    paths ``by_address``.
    """

    def __init__(self, app: ASGIApp, names: Sequence[str], by_address: Collection[str] = ()) -> None:
        super().__init__(app, names, www_redirect=False)
        self._by_address = frozenset(by_address)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] in self._by_address:
            host = Headers(scope=scope).get("host")
            if host is None or is_address(host):
                await self.app(scope, receive, send)
                return
        await super().__call__(scope, receive, send)


def is_address(host: str) -> bool:
    """Whether a Host header has an IP address, with or without a port. Pure."""
    try:
        ipaddress.ip_address(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return False
    return True
