"""Limits how often things are reported, and estimates the time left. Pure: the clock is passed in."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Throttle(Generic[T]):
    """Passes on the latest item of each kind, at most one item in ``interval_s`` seconds.

    After a pause, ``spare`` more items may pass at once.

    Other items wait until the next of their kind replaces them, or until ``flush``. Any thread may call.

    Args:
        interval_s: seconds.
        send: takes an item; called in the thread that offers it.
        clock: seconds.
        spare: items.
    """

    def __init__(
        self, interval_s: float, send: Callable[[T], None], clock: Callable[[], float], spare: int = 0
    ) -> None:
        self._interval_s = interval_s
        self._send = send
        self._clock = clock
        self._lock = threading.Lock()
        self._sent: dict[Hashable, float] = {}
        self._waiting: dict[Hashable, T] = {}
        self._most_spare = self._spare = float(spare)
        self._spared = clock()

    def offer(self, kind: Hashable, item: T) -> bool:
        """Pass ``item`` on or keep it for later; returns whether it was passed on."""
        now = self._clock()
        with self._lock:
            self._waiting.pop(kind, None)
            if not self._is_due(kind, now):
                self._waiting[kind] = item
                return False
            if not self._is_its_turn(kind, now):
                self._spare -= 1
            self._sent[kind] = now
        self._send(item)
        return True

    def is_due(self, kind: Hashable) -> bool:
        """Whether an item of this kind would be passed on now."""
        with self._lock:
            return self._is_due(kind, self._clock())

    def _is_due(self, kind: Hashable, now: float) -> bool:
        self._spare = min(self._most_spare, self._spare + (now - self._spared) / self._interval_s)
        self._spared = now
        return self._is_its_turn(kind, now) or self._spare >= 1

    def _is_its_turn(self, kind: Hashable, now: float) -> bool:
        last = self._sent.get(kind)
        return last is None or now - last >= self._interval_s * len(self._sent)

    def flush(self) -> None:
        """Pass on the waiting items, in order of arrival."""
        with self._lock:
            waiting, self._waiting = self._waiting, {}
            now = self._clock()
            self._sent.update(dict.fromkeys(waiting, now))
        for item in waiting.values():
            self._send(item)

    def forget(self) -> None:
        """Start over, and discard waiting items."""
        with self._lock:
            self._sent, self._waiting = {}, {}
            self._spare = self._most_spare


class TimeEstimator:
    """Estimates the remaining seconds from the time so far.

    The first item is ignored, because TensorFlow traces and compiles the first training step.
    """

    def __init__(self) -> None:
        self._began: tuple[int, float] | None = None

    def left_s(self, done: int, total: int | None, now: float) -> float | None:
        """Seconds until ``total`` are done, or None if unknown. Call it whenever ``done`` has grown."""
        if done <= 0:
            return None
        if self._began is None:
            self._began = (done, now)
        first, since = self._began
        if total is None or done <= first:
            return 0.0 if total is not None and done >= total else None
        return max(0, total - done) * (now - since) / (done - first)
