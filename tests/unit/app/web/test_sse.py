"""Server-sent events on the wire."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import nullcontext

import pytest
from sqlalchemy.exc import IntegrityError, OperationalError

from app.web.sse import ServerSentEvent, event_stream


def test_a_frame_is_three_lines_and_a_blank_one() -> None:
    assert ServerSentEvent("text", '{"a":1}', 7).encode() == b'id: 7\nevent: text\ndata: {"a":1}\n\n'
    assert ServerSentEvent("state", "{}").encode() == b"event: state\ndata: {}\n\n"


async def test_a_silent_stream_pings_and_loses_nothing() -> None:
    pinged = asyncio.Event()

    async def frames() -> AsyncIterator[list[ServerSentEvent]]:
        yield [ServerSentEvent("a", "1")]
        await pinged.wait()
        yield [ServerSentEvent("b", "2"), ServerSentEvent("c", "3")]

    chunks = []
    async with asyncio.timeout(10):
        async for chunk in event_stream(frames(), nullcontext(asyncio.Event()), ping_s=0.05).body_iterator:
            chunks.append(chunk)
            if chunk == b": ping\n\n":
                pinged.set()

    assert b": ping\n\n" in chunks
    assert [chunk for chunk in chunks if chunk != b": ping\n\n"] == [
        b"event: a\ndata: 1\n\n",
        b"event: b\ndata: 2\n\nevent: c\ndata: 3\n\n",
    ]


async def test_leaving_a_stream_ends_what_feeds_it() -> None:
    ended = asyncio.Event()

    waiting = asyncio.Event()

    async def frames() -> AsyncIterator[list[ServerSentEvent]]:
        try:
            yield [ServerSentEvent("a", "1")]
            waiting.set()
            await asyncio.sleep(600)
        finally:
            ended.set()

    body = event_stream(frames(), nullcontext(asyncio.Event())).body_iterator
    await anext(aiter(body))
    follow = asyncio.ensure_future(anext(aiter(body)))
    await asyncio.wait_for(waiting.wait(), 10)
    follow.cancel()
    await asyncio.wait_for(ended.wait(), 10)


async def test_a_database_failure_ends_streams_and_browsers_come_back_at_other_times() -> None:
    async def frames() -> AsyncIterator[list[ServerSentEvent]]:
        yield [ServerSentEvent("a", "1")]
        raise OperationalError("SELECT 1", None, OSError("the server closed the connection"))

    retries: set[int] = set()
    for _ in range(20):
        body = event_stream(frames(), nullcontext(asyncio.Event())).body_iterator
        chunks = [bytes(chunk).decode() async for chunk in body if not isinstance(chunk, str)]
        assert chunks[0] == "event: a\ndata: 1\n\n"
        retries.update(int(chunk.removeprefix("retry: ")) for chunk in chunks[1:])

    assert len(retries) > 1
    assert 2_000 <= min(retries) <= max(retries) <= 8_000


async def test_an_error_of_our_own_is_not_hidden_in_a_stream() -> None:
    async def frames() -> AsyncIterator[list[ServerSentEvent]]:
        raise IntegrityError("INSERT", None, ValueError("a constraint"))
        yield []

    with pytest.raises(IntegrityError):
        await anext(aiter(event_stream(frames(), nullcontext(asyncio.Event())).body_iterator))
