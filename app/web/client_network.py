"""The network that a request came from, as far as it says anything about who came."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address, ip_network

from starlette.requests import Request

_IPV6_PREFIX_BITS = 64
"""Bits. Whoever has one IPv6 address has all that begin with the same."""


def client_network(address: str | None) -> str | None:
    """The network that an address stands for, or None if it is not counted. Pure."""
    try:
        ip = ip_address((address or "").partition("%")[0])
    except ValueError:
        return None
    if isinstance(ip, IPv6Address):
        if ip.ipv4_mapped is None:
            return str(ip_network((ip, _IPV6_PREFIX_BITS), strict=False)) if ip.is_global else None
        ip = ip.ipv4_mapped
    return str(ip) if ip.is_global else None


def request_network(request: Request) -> str | None:
    """The network that a request came from; None if it is not counted."""
    return client_network(request.client.host if request.client else None)
