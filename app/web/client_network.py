"""The network that a request came from, as an approximation of who sent it."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address, ip_network
from typing import Annotated

import structlog
from fastapi import Depends
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from app.web.dependencies import of_request

_log = structlog.get_logger("proxy")

_IPV6_PREFIX_BITS = 64
"""In bits. Whoever has one IPv6 address has the whole network with this prefix."""


class UntrustedProxyWarning:
    """Logs one warning if X-Forwarded-For comes from an address that is not trusted.

    If that is the site's proxy, all learners seem to have its address, and limits per address are off. Operators rarely
    know that address, because it depends on the networks between the proxy and this process.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._warned = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._warned and scope["type"] == "http" and (address := _untrusted_proxy(scope)):
            self._warned = True
            _log.warning(
                "ignored X-Forwarded-For from an address that is not trusted: if it is the address of your proxy, set "
                "LOCKSTEP_PROXY_ADDRESS (with Compose) or FORWARDED_ALLOW_IPS to it, or limits per address are off",
                address=address,
            )
        await self._app(scope, receive, send)


def _untrusted_proxy(scope: Scope) -> str | None:
    """The address of a sender of X-Forwarded-For; None if there is no such header or uvicorn has applied it already."""
    if not scope.get("client"):
        return None
    address: str = scope["client"][0]
    clients = ",".join(Headers(scope=scope).getlist("x-forwarded-for"))
    return address if clients and address not in clients else None


def client_network(address: str | None) -> str | None:
    """The network of an address; None if it is not counted. Pure."""
    try:
        ip = ip_address((address or "").partition("%")[0])
    except ValueError:
        return None
    if isinstance(ip, IPv6Address):
        if ip.ipv4_mapped is None:
            return str(ip_network((ip, _IPV6_PREFIX_BITS), strict=False)) if ip.is_global else None
        ip = ip.ipv4_mapped
    return str(ip) if ip.is_global else None


def is_this_machine(address: str | None) -> bool:
    """Whether an address, if there is one, is this machine's own. Pure."""
    try:
        ip = ip_address(address or "127.0.0.1")
    except ValueError:
        return False
    mapped = ip.ipv4_mapped if isinstance(ip, IPv6Address) else None
    return (mapped or ip).is_loopback


def logged_network(address: str) -> str:
    """The network of an address in the security log; an address of a private network as it is. Pure."""
    return client_network(address) or address


def request_address(request: Request) -> str | None:
    """The IP address that a request came from."""
    return request.client.host if request.client else None


ClientAddress = Annotated[str | None, Depends(of_request(request_address))]
"""The IP address that a request came from."""
ClientNetwork = Annotated[str | None, Depends(of_request(lambda request: client_network(request_address(request))))]
"""The network that a request came from; None if it is not counted."""
