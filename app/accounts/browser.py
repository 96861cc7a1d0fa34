"""The browser that sent a request, as signing in and rate limits see it."""

from __future__ import annotations

from dataclasses import dataclass

from app.accounts.signing import Signer
from app.web.client_network import client_network
from app.web.cookies import Cookies


@dataclass(frozen=True, slots=True)
class Browser:
    """``ip_address`` and ``user_agent`` are empty if unknown."""

    cookies: Cookies
    signer: Signer
    """Signs the contents of cookies."""
    ip_address: str = ""
    user_agent: str = ""

    @property
    def network(self) -> str | None:
        """The browser's network; None if rate limits do not count it."""
        return client_network(self.ip_address)
