"""Limits how much of the supervisor's time one sandbox's messages may take. Pure: callers pass the time.

The supervisor reads the messages of all sessions in one thread. Whatever its messages cost, a sandbox that sends many
of them is read for only a small part of each second, and its neighbors are served in the rest. The account is that of
the sandbox, not of a run: otherwise each of many short runs would have a burst of its own.
"""

from __future__ import annotations

SHARE = 0.025
"""The share of the supervisor's time that one sandbox may take in the long run."""
BURST_S = 0.5
"""CPU time that a sandbox may take at once: more than 10,000 short messages, so that only a program that goes on like
that has to wait. With the share, and what is not charged, it stays below 5 % of 40 seconds."""
_SHORTEST_PAUSE_S = 0.05
"""Waking up for every few bytes of a slow sender costs more than reading them."""


class FairShare:
    """The account of one sandbox. Times are seconds."""

    def __init__(self, now: float) -> None:
        self._left_s = BURST_S
        self._at = now

    def spend(self, cpu_s: float) -> None:
        """Note CPU time that was spent on its messages."""
        self._left_s -= cpu_s

    def pause_s(self, now: float) -> float:
        """How long to wait before the next message is read; 0 while the account is not overdrawn."""
        self._left_s = min(BURST_S, self._left_s + (now - self._at) * SHARE)
        self._at = now
        pause_s = -self._left_s / SHARE
        return max(_SHORTEST_PAUSE_S, pause_s) if pause_s > 1e-6 else 0.0
