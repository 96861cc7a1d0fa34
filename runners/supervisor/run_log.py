"""The numbered events of one run, kept until the web application has stored them.

Text is collected for a moment before it becomes an event, longer as a run grows, so that an hour of progress bars makes
thousands of events and not a hundred thousand. The first text is never delayed.

An event is kept as the bytes that will be sent: they weigh what they count, whatever objects they would make.

Output is counted here in bytes of events, in total and over the last second. Time is the supervisor's, because a
kernel's clock cannot be trusted.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from itertools import islice
from typing import Any

from runners.config.settings import Limits, MiB
from runners.kernels.envelope import extra_bytes
from runners.wire.protocol import EVENT_ADAPTER, LimitName, Outcome, ReachedLimit, RunRequest, RunTrace

_LONGEST_TEXT = 65_536
_GATHER_S = ((0, 0.0), (20, 0.03), (500, 0.1), (2000, 0.25))
"""(events so far, seconds for which text is collected)."""
_OUTPUT = ("text", "display", "error", "clear", "metric", "progress")
_SEEN = ("text", "display", "error")
"""The kinds of events that count as first output."""
_PIECE_BYTES = 65_536
_FEW_EVENTS = 20
_SEND_INTERVAL_S = 0.02
"""How often new events of a run with more than a few are sent: sending takes longer than recording many of them."""
_ENVELOPE = 100
"""Bytes of an event in addition to its content."""
_SMALL_MESSAGE = 2048
_NOTHING = 256
"""Bytes that a message which makes no event counts in addition to its own."""
_MESSAGES_PER_OUTPUT = 8
"""Bytes of larger messages that a run may send for each allowed byte of output. Most of a message is its output."""
_MESSAGES_PER_EVENT = 20
"""Messages of any kind and size that a run may send for each allowed event. Many text messages make one event."""
_MOST_UNSHOWN = 20
"""The most MIME types that a notice lists."""


class RunLog:
    """One run and its events.

    Attributes:
        overflow: set once the run's output exceeds a limit; from then on, only its end is recorded.
        met: the limit that was exceeded.
        finished: whether the last event has been recorded.
        held_bytes: roughly the memory it takes: the code, and the output that is not acknowledged.
    """

    def __init__(
        self,
        request: RunRequest,
        limits: Limits,
        on_hold: Callable[[int], None] = lambda _: None,
        on_end: Callable[[RunLog], None] = lambda _: None,
    ) -> None:
        """Start with only the code; ``on_hold`` is called with every change of ``held_bytes``, ``on_end`` once with
        this run."""
        self.request = request
        self.accepted = time.monotonic()
        self.accepted_at = time.time()
        self.admitted: float | None = None
        """When its session had a place, by the monotonic clock."""
        self.started: float | None = None
        self.first_output_ms: int | None = None
        self.overflow = asyncio.Event()
        self.met: LimitName | None = None
        self.finished = False
        self.finished_at = 0.0
        self.outcome: Outcome | None = None
        self.runs_before: int | None = None
        self.kernel_id = ""
        self.last = 0
        """Number of the last event."""
        self.acknowledged = 0
        self.held_bytes = 0
        self.sent = 0
        """How many pieces of events have been sent."""
        self._on_hold = on_hold
        self._on_end = on_end
        self._code_bytes = _code_bytes(request)
        self._hold(self._code_bytes)
        self._lines: deque[bytes] = deque()
        """The events that are not acknowledged, as JSON; the last one has the number ``last``."""
        self._changed: set[asyncio.Event] = set()
        self._bytes = 0
        self._messages = 0
        self._message_bytes = 0
        self._most_bytes = int(limits.output_mb * MiB)
        self._most_bytes_per_s = int(limits.output_mb_per_s * MiB)
        self._most_bytes_per_display = int(limits.display_mb * MiB)
        self._most_events = limits.events
        self._last_second: deque[tuple[float, int]] = deque()
        self._last_second_bytes = 0
        self._unshown: set[str] = set()
        self._gathered: dict[str | None, tuple[str, list[str]]] = {}
        """The collected text by lane, in the order in which lanes began: the stream and its text."""
        self._gathered_size = 0
        self._timer: asyncio.TimerHandle | None = None
        self._last_text = 0.0

    def received(self, size: int) -> None:
        """Count a message of ``size`` bytes, even if it makes no event, because it has to be read all the same."""
        self._messages += 1
        if size > _SMALL_MESSAGE:
            self._message_bytes += size
        if self.overflow.is_set():
            return
        if self._message_bytes > _MESSAGES_PER_OUTPUT * self._most_bytes:
            self.met = "output"
        elif self._messages > _MESSAGES_PER_EVENT * self._most_events:
            self.met = "events"
        if self.met:
            self.overflow.set()

    def shows_nothing(self, size: int) -> None:
        """Count a received message of ``size`` bytes that makes no event: it draws on the same budget as large ones."""
        self._message_bytes += _NOTHING + (size if size <= _SMALL_MESSAGE else 0)

    def add(self, kind: str, **fields: Any) -> None:
        """Record an event. Use ``text`` for text."""
        self.flush()
        if self.finished or (self.overflow.is_set() and kind in _OUTPUT):
            return
        self._record(kind, fields)

    def text(self, stream: str, text: str, lane: str | None = None) -> None:
        """Record printed text, after a short delay."""
        if self.overflow.is_set() or self.finished:
            return
        if lane in self._gathered and self._gathered[lane][0] != stream:
            self.flush()
        self._gathered.setdefault(lane, (stream, []))[1].append(text)
        self._gathered_size += len(text)
        gather_s = next(wait_s for events, wait_s in reversed(_GATHER_S) if self.last >= events)
        wait = gather_s - (time.monotonic() - self._last_text)
        if wait <= 0 or self._gathered_size >= _LONGEST_TEXT:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(wait, self.flush)

    def not_shown(self, types: Collection[str], size: int) -> None:
        """Report, once for each type, that a display has no type that may be shown. It counts as output anyway."""
        if self.overflow.is_set() or not self._may_have(size + _ENVELOPE, time.monotonic(), at_once=True):
            return
        new = [mime for mime in dict.fromkeys(types) if mime not in self._unshown]
        if not new or len(self._unshown) >= _MOST_UNSHOWN:
            return
        self._unshown.update(new)
        named = ", ".join(new)
        text = f"A display was left out because nothing of its type can be shown here: {named}."
        self.add("notice", code="display-not-shown", values={"types": named}, text=text)

    def flush(self) -> None:
        """Turn the collected text into events."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if not self._gathered:
            return
        gathered, self._gathered, self._gathered_size = self._gathered, {}, 0
        self._last_text = time.monotonic()
        for lane, (stream, parts) in gathered.items():
            whole = "".join(parts)
            for start in range(0, len(whole), _LONGEST_TEXT):
                if not self.overflow.is_set():
                    self._record("text", {"stream": stream, "text": whole[start : start + _LONGEST_TEXT], "lane": lane})

    def finish(self, outcome: Outcome, **fields: Any) -> None:
        """Record the last event. Idempotent."""
        self.flush()
        if self.finished:
            return
        duration = 0 if self.started is None else int((time.monotonic() - self.started) * 1000)
        self.outcome, self.finished_at = outcome, time.monotonic()
        fields |= {"outcome": outcome, "duration_ms": duration, "first_output_ms": self.first_output_ms}
        fields["runs_before"] = self.runs_before
        fields["trace"] = self._trace()
        self._record("finished", fields)
        self.finished = True
        self._on_end(self)
        self._hold(-self._code_bytes)  # it will not run again
        self.request = self.request.model_copy(update={"code": "", "judgement": None})

    def _trace(self) -> RunTrace | None:
        """Its times, if it is traced."""

        def since_accepted(moment: float | None) -> int | None:
            return None if moment is None else int((moment - self.accepted) * 1000)

        if not self.request.trace_context:
            return None
        return RunTrace(
            context=self.request.trace_context,
            accepted_at=self.accepted_at,
            admitted_ms=since_accepted(self.admitted),
            started_ms=since_accepted(self.started),
        )

    def acknowledge(self, through: int) -> None:
        """Forget the events up to ``through``, which the web application has stored."""
        self.acknowledged = max(self.acknowledged, min(through, self.last))
        while len(self._lines) > self.last - self.acknowledged:
            self._hold(-_weight(self._lines.popleft()))

    async def after(self, number: int, patience_s: float) -> AsyncIterator[bytes | None]:
        """Yield the events after ``number`` as they come, up to ``finished``, as lines of JSON.

        Events that are already there are joined to larger pieces. None means that none came for ``patience_s`` seconds.
        """
        changed, sent_at = asyncio.Event(), 0.0
        self._changed.add(changed)
        try:
            while True:
                changed.clear()
                if (new := min(self.last - number, len(self._lines))) > 0:
                    number, sent_at = self.last, time.monotonic()
                    for piece in _pieces([*islice(reversed(self._lines), new)][::-1]):
                        self.sent += 1
                        yield piece
                if self.finished and max(number, self.acknowledged) >= self.last:
                    return
                if not changed.is_set():
                    try:
                        await asyncio.wait_for(changed.wait(), patience_s)
                    except TimeoutError:
                        yield None
                if self.last > _FEW_EVENTS and not self.finished:
                    await asyncio.sleep(max(0.0, sent_at + _SEND_INTERVAL_S - time.monotonic()))
        finally:
            self._changed.discard(changed)

    def _hold(self, size: int) -> None:
        self.held_bytes += size
        self._on_hold(size)

    def _record(self, kind: str, fields: dict[str, Any]) -> None:
        now = time.monotonic()
        at_ms = int((now - self.accepted) * 1000)
        if kind == "started":
            self.started = now
        event = EVENT_ADAPTER.validate_python({"kind": kind, "seq": self.last + 1, "at_ms": at_ms, **fields})
        line = EVENT_ADAPTER.dump_json(event)
        if kind in _OUTPUT:
            size = len(line) + (extra_bytes(line) if kind == "display" else 0)
            too_large = kind == "display" and size > self._most_bytes_per_display
            if not self._may_have(size, now, at_once=not too_large):
                return
            if too_large:
                self._leave_out(size)
                return
            if kind in _SEEN and self.first_output_ms is None:
                self.first_output_ms = at_ms
        self.last += 1
        self._lines.append(line)
        self._hold(_weight(line))
        for changed in self._changed:
            changed.set()

    def _may_have(self, size: int, now: float, *, at_once: bool) -> bool:
        """Count output of ``size`` bytes; False if too much. Without ``at_once``, it counts only for the total."""
        self._bytes += size
        if at_once:
            self._last_second.append((now, size))
            self._last_second_bytes += size
        while self._last_second and self._last_second[0][0] < now - 1:
            self._last_second_bytes -= self._last_second.popleft()[1]
        if self._bytes > self._most_bytes:
            self.met = "output"
        elif self.last + 1 > self._most_events:
            self.met = "events"
        elif self._last_second_bytes > self._most_bytes_per_s:
            self.met = "output_rate"
        else:
            return True
        self.overflow.set()
        return False

    def too_many_values(self, size: int) -> None:
        """Report that a message was not parsed because its values count ``size`` bytes; these are not charged."""
        if not self.overflow.is_set() and not self.finished:
            self.flush()
            self._leave_out(size)

    def _leave_out(self, size: int) -> None:
        most = self._most_bytes_per_display
        text = f"A display of {size / MiB:.1f} MiB was left out because the limit is {most / MiB:.3g} MiB."
        values, limit = {"size": size, "most": most}, ReachedLimit(name="display", value=most, unit="bytes")
        self._record("notice", {"code": "display-too-large", "values": values, "text": text, "limit": limit})


def _weight(line: bytes) -> int:
    """Roughly the memory that an event takes."""
    return len(line) + _ENVELOPE


def _pieces(lines: list[bytes]) -> Iterator[bytes]:
    """Join lines to pieces of about ``_PIECE_BYTES``: a piece for each line would cost more than making it did."""
    waiting, size = [], 0
    for line in lines:
        waiting += [line, b"\n"]
        size += len(line)
        if size >= _PIECE_BYTES:
            yield b"".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)


def _code_bytes(request: RunRequest) -> int:
    judgement = request.judgement
    if judgement is None:
        return len(request.code)
    parts = (request.code, judgement.solution, judgement.checks, *(cell.code for cell in judgement.needs))
    return sum(map(len, parts))
