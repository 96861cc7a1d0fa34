"""A stream of a run never ends before the run's last event."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.db import Database
from app.runs import event_log, stream
from app.runs.follower_pool import FollowerPool
from app.runs.models import RunState
from app.runs.quotas import QuotaLimits, Quotas
from app.runs.stream import RunStreams
from runners.wire.client import RunnerClient
from runners.wire.protocol import Outcome, TextEvent
from tests.factories.stored_runs import store_run


@pytest.fixture
async def streams(database: Database, tmp_path: Path) -> AsyncIterator[RunStreams]:
    """Streams with a supervisor that is not there."""
    async with RunnerClient(tmp_path / "nobody.sock") as runner:
        followers = FollowerPool(database, runner, database.bus, Quotas(database, QuotaLimits()))
        yield RunStreams(database, runner, database.bus, followers)
        await followers.close()


@pytest.fixture
async def run_id(database: Database) -> str:
    return await store_run(database, state=RunState.running)


async def test_an_end_that_is_stored_between_two_checks_is_still_reported(
    streams: RunStreams, database: Database, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0
    look = event_log.read_stored_events

    async def read(db: Database, run: str, after: int) -> list[event_log.StoredEvent]:
        nonlocal looks
        looks += 1
        lines = await look(db, run, after)
        if looks == 2:  # the first look that is followed by a question about where the run stands
            await event_log.finish_run(database, run_id, Outcome.ok)
        return lines

    monkeypatch.setattr(stream, "_POSITION_POLL_S", 0.01)
    monkeypatch.setattr(event_log, "read_stored_events", read)

    kinds = [frame.event async for batch in streams.frames(run_id, 0) for frame in batch]

    assert kinds[-1] == "finished"


async def test_a_stream_behind_the_last_event_ends(streams: RunStreams, database: Database, run_id: str) -> None:
    await event_log.finish_run(database, run_id, Outcome.ok)

    assert [batch async for batch in streams.frames(run_id, 1)] == []


async def test_a_run_that_goes_on_in_silence_is_not_asked_about_again_and_again(
    streams: RunStreams, database: Database, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0
    look = event_log.read_stored_events

    async def read(db: Database, run: str, after: int) -> list[event_log.StoredEvent]:
        nonlocal looks
        looks += 1
        return await look(db, run, after)

    monkeypatch.setattr(stream, "_POSITION_POLL_S", 0.02)
    monkeypatch.setattr(stream, "_QUEUE_DISPLAY_DELAY_S", 0.01)
    monkeypatch.setattr(event_log, "read_stored_events", read)
    monkeypatch.setattr(FollowerPool, "watch", lambda _pump, _run_id: None)
    frames = streams.frames(run_id, 0)
    assert [frame.event for frame in await anext(frames)] == ["state"]
    following = asyncio.ensure_future(anext(frames))
    await asyncio.sleep(0.5)
    assert looks == 2

    await event_log.append_events(database, run_id, 0, [TextEvent(seq=1, at_ms=0, stream="stdout", text="x")])

    async with asyncio.timeout(5):
        assert [frame.event for frame in await following] == ["text"]
    assert looks == 3
