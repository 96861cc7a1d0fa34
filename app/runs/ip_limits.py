"""Limits the learners per network address. Limits per learner are not enough, because a new cookie costs nothing.

Only public addresses are counted. A private address is either an unknown proxy, with everyone behind it, or a learner
on the local network, who has the address alone. Each web process counts separately.
"""

from __future__ import annotations

from app.runs.errors import AddressLimitReached
from app.web.client_network import client_network

ACTIVE_LEARNER_S = 1200.0
"""A learner who has not run code for this long no longer has a session and is not counted."""
_CLEANUP_INTERVAL_S = 60.0


class AddressLimiter:
    """The learners seen at each network address. Used from one event loop.

    Args:
        most: learners per address; 0 means no limit.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._seen: dict[str, dict[str, float]] = {}
        """By address and learner: the time of the last request, in seconds of the caller's clock."""
        self._swept_at = 0.0

    def admit(self, address: str | None, visitor: str, now: float) -> None:
        """Count a learner who runs code. Raises AddressLimitReached if too many others use the same network."""
        network = client_network(address)
        if not self._most or network is None:
            return
        if now - self._swept_at > _CLEANUP_INTERVAL_S:
            self._sweep(now)
        here = self._seen.setdefault(network, {})
        if visitor not in here and len(here) >= self._most:
            self._sweep(now)
            here = self._seen.setdefault(network, {})
            if len(here) >= self._most:
                raise AddressLimitReached(most=self._most)
        here[visitor] = now

    def _sweep(self, now: float) -> None:
        self._swept_at = now
        live = {
            network: {v: at for v, at in here.items() if now - at < ACTIVE_LEARNER_S}
            for network, here in self._seen.items()
        }
        self._seen = {network: here for network, here in live.items() if here}
