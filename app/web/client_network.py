"""The network that a request came from, as an approximation of who sent it."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address, ip_network
from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

_IPV6_PREFIX_BITS = 64
"""In bits. Whoever has one IPv6 address has the whole network with this prefix."""


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


def request_address(request: Request) -> str | None:
    """The IP address that a request came from."""
    return request.client.host if request.client else None


async def _client_address(request: Request) -> str | None:
    return request_address(request)


async def _client_network(request: Request) -> str | None:
    return client_network(request_address(request))


ClientAddress = Annotated[str | None, Depends(_client_address)]
"""The IP address that a request came from."""
ClientNetwork = Annotated[str | None, Depends(_client_network)]
"""The network that a request came from; None if it is not counted."""
