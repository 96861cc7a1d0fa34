"""Batches: immediate for little output, fewer and larger for much, and always in order."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.runs.batching import BATCH_INTERVAL_S, MAX_BATCH_SIZE, TokenBucket, batch_events
from runners.wire.client import RunnerUnavailable
from runners.wire.protocol import Event, FinishedEvent, Outcome, TextEvent


def _text(seq: int) -> TextEvent:
    return TextEvent(seq=seq, at_ms=0, stream="stdout", text="x")


async def _events(count: int, pause_s: float = 0.0, error: Exception | None = None) -> AsyncIterator[Event]:
    for seq in range(1, count + 1):
        yield _text(seq)
        await asyncio.sleep(pause_s)
    if error is not None:
        raise error
    yield FinishedEvent(seq=count + 1, at_ms=0, outcome=Outcome.ok)


async def test_nothing_is_lost_or_reordered() -> None:
    seen = [event.seq async for batch in batch_events(_events(3000), 60) for event in batch]

    assert seen == list(range(1, 3002))


async def test_a_batch_has_a_bound() -> None:
    assert max([len(batch) async for batch in batch_events(_events(3000), 60)]) <= MAX_BATCH_SIZE


async def test_the_first_event_does_not_wait_for_others() -> None:
    stream = batch_events(_events(2, pause_s=600), 900)
    async with asyncio.timeout(10):
        assert [event.seq for event in await anext(stream)] == [1]
    await stream.aclose()


async def test_a_fast_stream_is_stored_in_few_batches() -> None:
    began = time.monotonic()
    count = len([batch async for batch in batch_events(_events(100, pause_s=0.002), 60)])
    assert count <= 6 + (time.monotonic() - began) / BATCH_INTERVAL_S


async def test_an_error_comes_after_everything_before_it() -> None:
    seen: list[int] = []

    async def read() -> None:
        async for batch in batch_events(_events(10, error=RunnerUnavailable("broke")), 60):
            seen.extend(event.seq for event in batch)

    with pytest.raises(RunnerUnavailable):
        await read()
    assert seen == list(range(1, 11))


async def test_a_silence_is_said_and_loses_nothing() -> None:
    seen = [[event.seq for event in batch] async for batch in batch_events(_events(3, pause_s=0.12), 0.05)]

    assert [] in seen
    assert [seq for batch in seen for seq in batch] == [1, 2, 3, 4]


async def test_leaving_early_stops_the_reader() -> None:
    stopped = asyncio.Event()

    async def endless() -> AsyncIterator[Event]:
        try:
            yield _text(1)
            await asyncio.sleep(60)
        finally:
            stopped.set()

    stream = batch_events(endless(), 60)
    await anext(stream)
    await stream.aclose()

    assert stopped.is_set()


@given(st.lists(st.floats(min_value=0, max_value=1), min_size=1, max_size=200))
def test_a_pace_never_gives_more_than_it_may(gaps: list[float]) -> None:
    at = 0.0
    pace = TokenBucket(0.05, 4, clock=lambda: at)
    for spent, gap in enumerate(gaps, 1):
        at += gap
        at += pace.due_in_s()
        pace.spend()

        assert spent <= 4 + at / 0.05 + 1e-6
