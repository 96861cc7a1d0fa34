"""Wake-ups inside one process: a writer says that a topic has news, whoever listens looks for itself.

Nothing is carried but the wake-up. A missed one costs a listener its poll interval, never data.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Subscription:
    """What a listener waits on."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """Wake the listener, now or at its next wait."""
        self._rung.set()

    async def wait(self, at_most_s: float) -> None:
        """Return when rung since the last wait, or after ``at_most_s`` seconds."""
        try:
            async with asyncio.timeout(at_most_s):
                await self._rung.wait()
        except TimeoutError:
            pass
        self._rung.clear()


class Bus:
    """Topics and their listeners."""

    def __init__(self) -> None:
        self._bells: dict[str, set[Subscription]] = {}
        self.closed = False
        """True once the server is going down: listeners go home."""

    def wake(self, topic: str) -> None:
        """Wake every listener of the topic."""
        for bell in self._bells.get(topic, ()):
            bell.ring()

    def close(self) -> None:
        """Send every listener home."""
        self.closed = True
        for topic in self._bells:
            self.wake(topic)

    @contextmanager
    def listen(self, topic: str) -> Iterator[Subscription]:
        """Hear the topic while the block lasts."""
        bell = Subscription()
        self._bells.setdefault(topic, set()).add(bell)
        try:
            yield bell
        finally:
            bells = self._bells[topic]
            bells.discard(bell)
            if not bells:
                del self._bells[topic]
