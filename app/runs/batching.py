"""Splits a stream of events into batches: immediate while events are rare, fewer and larger when there are many."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable

from runners.wire.protocol import Event

MAX_BATCH_SIZE = 500
BATCH_INTERVAL_S = 0.05
"""A long stream gives one batch per interval; after a pause, the first few batches are sent at once."""
_BURST_BATCHES = 4


class TokenBucket:
    """Gains a token every ``every_s`` seconds and holds at most ``most``."""

    def __init__(self, every_s: float, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._every_s = every_s
        self._most = most
        self._clock = clock
        self._credit = float(most)
        self._seen = clock()

    def due_in_s(self) -> float:
        """How long until a token is available."""
        self._gain()
        return max(0.0, (1 - self._credit) * self._every_s)

    def spend(self) -> None:
        self._gain()
        self._credit -= 1

    def _gain(self) -> None:
        at = self._clock()
        self._credit = min(self._most, self._credit + (at - self._seen) / self._every_s)
        self._seen = at


class _EventBuffer:
    """The events that a task has read, and the error that ended the stream, if any."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[Event | None] = asyncio.Queue(2 * MAX_BATCH_SIZE)
        self.error: Exception | None = None

    async def fill(self, events: AsyncIterator[Event]) -> None:
        try:
            async for event in events:
                await self.queue.put(event)
        except Exception as e:
            self.error = e
        await self.queue.put(None)

    def take(self, batch: list[Event]) -> bool:
        """Move available events into the batch. True if the stream has ended or the batch is complete."""
        while len(batch) < MAX_BATCH_SIZE:
            try:
                event = self.queue.get_nowait()
            except asyncio.QueueEmpty:
                return bool(batch) and batch[-1].kind == "finished"
            if event is None:
                self.queue.put_nowait(None)
                return True
            batch.append(event)
        return True


async def batch_events(events: AsyncIterator[Event], silence_s: float) -> AsyncGenerator[list[Event], None]:
    """Yield events in batches, and an empty batch after each silence. At the end, raises what the stream raised."""
    inbox = _EventBuffer()
    reader = asyncio.create_task(inbox.fill(events))
    pace = TokenBucket(BATCH_INTERVAL_S, _BURST_BATCHES)
    try:
        while True:
            try:
                async with asyncio.timeout(silence_s):
                    first = await inbox.queue.get()
            except TimeoutError:
                yield []
                continue
            if first is None:
                break
            batch = [first]
            if not inbox.take(batch) and (wait_s := pace.due_in_s()):
                await asyncio.sleep(wait_s)
                inbox.take(batch)
            pace.spend()
            yield batch
        if inbox.error is not None:
            raise inbox.error
    finally:
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)
