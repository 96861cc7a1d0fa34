"""How many learners one network address brings. A cookie costs nothing, so limits on each learner bound nobody alone.

Only addresses of the public Internet are counted. A private one is a proxy's that we were not told of, with everyone
behind it, or a learner's on our own network, who has it alone. Each web process counts for itself.
"""

from __future__ import annotations

from app.runs.errors import AddressLimitReached
from app.web.client_network import client_network

ACTIVE_LEARNER_S = 1200.0
"""A learner who has not asked for code to run for so long has no session any more, and is not counted."""
_CLEANUP_INTERVAL_S = 60.0


class AddressLimiter:
    """Who came from where. Used from one event loop.

    Args:
        most: learners from one address; 0 for any number.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._seen: dict[str, dict[str, float]] = {}
        """By address and visitor: when they last asked, in seconds of the caller's clock."""
        self._swept_at = 0.0

    def admit(self, address: str | None, visitor: str, now: float) -> None:
        """Let a learner have code run. Raises AddressLimitReached if too many others come from the same network."""
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
