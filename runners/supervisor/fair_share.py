"""Limits how much of the supervisor's time one session's messages may take. Pure: callers pass the time.

The supervisor reads the messages of all sessions in one thread. Whatever its messages cost, a session that sends many
of them is read for only part of each second, and its neighbors are served in the rest.
"""

from __future__ import annotations

SHARE = 0.5
"""The share of the supervisor's time that one session may take."""
BURST_S = 1.0
"""CPU time that a session may take at once; ordinary output never takes more."""


class FairShare:
    """The account of one reader. Times are seconds."""

    def __init__(self, now: float) -> None:
        self._left_s = BURST_S
        self._at = now

    def spend(self, cpu_s: float) -> None:
        """Note the CPU time that a message took."""
        self._left_s -= cpu_s

    def pause_s(self, now: float) -> float:
        """How long to wait before the next message is read; 0 while the account is not overdrawn."""
        self._left_s = min(BURST_S, self._left_s + (now - self._at) * SHARE)
        self._at = now
        return max(0.0, -self._left_s / SHARE)
