"""Server-sent events: frames, and an answer that pings, ends with its client and ends with the server."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from starlette.responses import StreamingResponse

PING_INTERVAL_S = 15.0

_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
_PING = b": ping\n\n"


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One event. ``data`` is JSON on one line; a frame without ``id`` is not resumed after."""

    event: str
    data: str
    id: int | None = None

    def encode(self) -> bytes:
        """The bytes on the wire."""
        head = f"id: {self.id}\n" if self.id is not None else ""
        return f"{head}event: {self.event}\ndata: {self.data}\n\n".encode()


class ConnectionLimiter:
    """How many streams are open in this process, and whose: ``most`` for each; 0 for any number."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken: Counter[str] = Counter()

    def full(self, whose: str | None) -> bool:
        """Whether there is no room for one more. Nobody is counted under None."""
        return whose is not None and 0 < self._most <= self._taken[whose]

    @contextmanager
    def taken(self, whose: str | None) -> Iterator[bool]:
        """Have a seat while the block lasts; False if there was none: many asked before any of them had begun."""
        if full := self.full(whose):
            yield not full
            return
        if whose is not None:
            self._taken[whose] += 1
        try:
            yield True
        finally:
            if whose is not None:
                self._taken -= Counter({whose: 1})


def event_stream(frames: AsyncIterator[list[ServerSentEvent]], *, ping_s: float = PING_INTERVAL_S) -> StreamingResponse:
    """Answer with batches of frames; a silent stream is kept alive by comments."""
    return StreamingResponse(_encoded_events(frames, ping_s), media_type="text/event-stream", headers=_HEADERS)


async def _encoded_events(frames: AsyncIterator[list[ServerSentEvent]], ping_s: float) -> AsyncIterator[bytes]:
    coming = asyncio.ensure_future(anext(frames, None))
    try:
        while True:
            done, _ = await asyncio.wait({coming}, timeout=ping_s)
            if not done:
                yield _PING
                continue
            batch = coming.result()
            if batch is None:
                return
            yield b"".join(frame.encode() for frame in batch)
            coming = asyncio.ensure_future(anext(frames, None))
    finally:
        coming.cancel()
