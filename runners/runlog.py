"""The numbered events of one run, kept until the app has stored them.

Text is gathered for a moment before it becomes an event, longer as a run grows, so that an hour of progress bars is
thousands of events and not a hundred thousand. The first text is never held back.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

from runners.protocol import EVENT, Event, Outcome, RunRequest
from runners.settings import Limits, MiB

_LONGEST_TEXT = 65_536
_GATHER_S = ((0, 0.0), (20, 0.03), (500, 0.1), (2000, 0.25))
"""(events so far, seconds that text waits for more)."""
_OUTPUT = ("text", "display", "error", "clear")


class RunLog:
    """One run and its events.

    Attributes:
        overflow: set once the run has put out more than it may; nothing is recorded from then on but its end.
        finished: whether the last event is there.
    """

    def __init__(self, request: RunRequest, limits: Limits) -> None:
        self.request = request
        self.accepted = time.monotonic()
        self.started: float | None = None
        self.first_output_ms: int | None = None
        self.overflow = asyncio.Event()
        self.finished = False
        self.finished_at = 0.0
        self.outcome: Outcome | None = None
        self.last = 0
        """Number of the last event."""
        self.acknowledged = 0
        self._events: deque[Event] = deque()
        self._changed: set[asyncio.Event] = set()
        self._bytes = 0
        self._most_bytes = int(limits.output_mb * MiB)
        self._most_events = limits.events
        self._gathered: tuple[str, list[str]] | None = None
        self._gathered_size = 0
        self._timer: asyncio.TimerHandle | None = None
        self._last_text = 0.0

    def add(self, kind: str, **fields: Any) -> None:
        """Record an event; text goes through ``text``."""
        self.flush()
        if self.finished or (self.overflow.is_set() and kind in _OUTPUT):
            return
        self._record(kind, fields)

    def text(self, stream: str, text: str) -> None:
        """Record printed text, soon."""
        if self.overflow.is_set() or self.finished:
            return
        if self._gathered and self._gathered[0] != stream:
            self.flush()
        if self._gathered is None:
            self._gathered = (stream, [])
        self._gathered[1].append(text)
        self._gathered_size += len(text)
        wait = self._gather_s() - (time.monotonic() - self._last_text)
        if wait <= 0 or self._gathered_size >= _LONGEST_TEXT:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(wait, self.flush)

    def flush(self) -> None:
        """Turn the gathered text into events."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if self._gathered is None:
            return
        stream, parts = self._gathered
        self._gathered, self._gathered_size = None, 0
        self._last_text = time.monotonic()
        whole = "".join(parts)
        for start in range(0, len(whole), _LONGEST_TEXT):
            if not self.overflow.is_set():
                self._record("text", {"stream": stream, "text": whole[start : start + _LONGEST_TEXT]})

    def finish(self, outcome: Outcome, **fields: Any) -> None:
        """Record the last event. The second time changes nothing."""
        self.flush()
        if self.finished:
            return
        duration = 0 if self.started is None else int((time.monotonic() - self.started) * 1000)
        self.outcome, self.finished_at = outcome, time.monotonic()
        fields |= {"outcome": outcome, "duration_ms": duration, "first_output_ms": self.first_output_ms}
        self._record("finished", fields)
        self.finished = True

    def acknowledge(self, through: int) -> None:
        """The app has stored the events up to ``through``: forget them."""
        self.acknowledged = max(self.acknowledged, min(through, self.last))
        while self._events and self._events[0].seq <= self.acknowledged:
            self._events.popleft()

    async def after(self, number: int, patience_s: float) -> AsyncIterator[Event | None]:
        """Yield the events after ``number`` as they come, up to ``finished``; None after each while of silence."""
        changed = asyncio.Event()
        self._changed.add(changed)
        try:
            while True:
                changed.clear()
                for event in [e for e in self._events if e.seq > number]:
                    number = event.seq
                    yield event
                if self.finished and max(number, self.acknowledged) >= self.last:
                    return
                if not changed.is_set():
                    try:
                        await asyncio.wait_for(changed.wait(), patience_s)
                    except TimeoutError:
                        yield None
        finally:
            self._changed.discard(changed)

    def _gather_s(self) -> float:
        return next(wait for events, wait in reversed(_GATHER_S) if self.last >= events)

    def _record(self, kind: str, fields: dict[str, Any]) -> None:
        now = time.monotonic()
        at_ms = int((now - self.accepted) * 1000)
        if kind == "started":
            self.started = now
        if kind in _OUTPUT and kind != "clear" and self.first_output_ms is None:
            self.first_output_ms = at_ms
        event = EVENT.validate_python({"kind": kind, "seq": self.last + 1, "at_ms": at_ms, **fields})
        if kind in _OUTPUT:
            self._bytes += len(event.model_dump_json())
            if self._bytes > self._most_bytes or self.last + 1 > self._most_events:
                self.overflow.set()
                return
        self.last += 1
        self._events.append(event)
        for changed in self._changed:
            changed.set()
