"""Server-sent events: encoding, and a response that sends pings and ends with its client or with the server.

A stream also ends when the database fails: the browser then comes back, and is answered with 503 until that works.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

import structlog
from sqlalchemy.exc import SQLAlchemyError
from starlette.responses import StreamingResponse

from app.database_health import classify_database_error, log_failure
from app.metrics import OPEN_STREAMS

PING_INTERVAL_S = 15.0

_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
_PING = b": ping\n\n"
_RETRY_MS = (2_000, 8_000)
"""When the browsers whose streams a failure has ended come back: not all at once."""

_log = structlog.get_logger("sse")


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One event. ``data`` is JSON on one line; without ``id``, a stream cannot be resumed after it."""

    event: str
    data: str
    id: int | None = None

    def encode(self) -> bytes:
        head = f"id: {self.id}\n" if self.id is not None else ""
        return f"{head}event: {self.event}\ndata: {self.data}\n\n".encode()


class ConnectionLimiter:
    """Limits the open streams in this process to ``most`` per owner; 0 means no limit."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken: Counter[str] = Counter()

    def full(self, whose: str | None) -> bool:
        """Whether the owner has no stream left. Streams of None are not counted."""
        return whose is not None and 0 < self._most <= self._taken[whose]

    @contextmanager
    def taken(self, whose: str | None) -> Iterator[bool]:
        """Take a slot inside the block. Yields False if none is left, as when many requests arrive at once."""
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


def event_stream(
    frames: AsyncIterator[list[ServerSentEvent]],
    until: AbstractContextManager[asyncio.Event],
    *,
    ping_s: float = PING_INTERVAL_S,
) -> StreamingResponse:
    """Respond with batches of events; comments keep a silent stream alive. Ends once the event in ``until`` is set."""
    return StreamingResponse(_encoded_events(frames, until, ping_s), media_type="text/event-stream", headers=_HEADERS)


async def _encoded_events(
    frames: AsyncIterator[list[ServerSentEvent]], until: AbstractContextManager[asyncio.Event], ping_s: float
) -> AsyncIterator[bytes]:
    coming = asyncio.ensure_future(anext(frames, None))
    with until as ended, OPEN_STREAMS.track_inprogress():
        ending = asyncio.ensure_future(ended.wait())
        try:
            while True:
                done, _ = await asyncio.wait({coming, ending}, timeout=ping_s, return_when=asyncio.FIRST_COMPLETED)
                if ending in done:
                    return
                if not done:
                    yield _PING
                    continue
                try:
                    batch = coming.result()
                except SQLAlchemyError as e:
                    if classify_database_error(e) is None:
                        raise
                    log_failure(_log, "a stream ended", e)
                    yield f"retry: {random.randint(*_RETRY_MS)}\n\n".encode()  # noqa: S311 - nobody gains by guessing it
                    return
                if batch is None:
                    return
                yield b"".join(frame.encode() for frame in batch)
                coming = asyncio.ensure_future(anext(frames, None))
        finally:
            coming.cancel()
            ending.cancel()
