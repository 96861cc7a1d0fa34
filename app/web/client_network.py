"""The network that a request came from, as an approximation of who sent it."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address, ip_network
from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

from app.web.dependencies import of_request

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
