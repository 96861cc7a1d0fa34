"""The browser that sent a request: what signing in and its rate limits need of it."""

from __future__ import annotations

from dataclasses import dataclass

from app.accounts.signing import Signer
from app.web.client_network import client_network
from app.web.cookies import Cookies


@dataclass(frozen=True, slots=True)
class Browser:
    """``ip_address`` and ``user_agent`` are empty if they are not known."""

    cookies: Cookies
    signer: Signer
    """Signs what the cookies hold."""
    ip_address: str = ""
    user_agent: str = ""

    @property
    def network(self) -> str | None:
        """The network that it is on; None if rate limits do not count it."""
        return client_network(self.ip_address)
