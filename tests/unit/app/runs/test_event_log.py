"""The log of a run: a sequence without gaps, whoever writes it, on both databases."""

from __future__ import annotations

import asyncio

import pytest

from app.db import Database, now
from app.runs import event_log
from app.runs.models import EVENT_ROW_BYTES, Run
from runners.wire.protocol import Event, FinishedEvent, Outcome, StartedEvent, TextEvent
from tests.factories.stored_runs import store_run


def _texts(first: int, last: int) -> list[Event]:
    return [TextEvent(seq=seq, at_ms=seq, stream="stdout", text=f"{seq}\u2028\0") for seq in range(first, last + 1)]


@pytest.fixture
async def run_id(database: Database) -> str:
    return await store_run(database)


async def test_what_was_appended_is_read_back_in_order(database: Database, run_id: str) -> None:
    events = [
        StartedEvent(seq=1, at_ms=0),
        *_texts(2, 5),
        FinishedEvent(seq=6, at_ms=9, outcome=Outcome.ok, duration_ms=9),
    ]

    await event_log.append_events(database, run_id, 0, events[:3])
    await event_log.append_events(database, run_id, 3, events[3:])

    async with database.session() as session:
        assert await event_log.read_events(session, run_id) == events
        run = await session.get_one(Run, run_id)
    assert (run.state, run.outcome, run.last_seq, run.duration_ms) == ("finished", "ok", 6, 9)
    assert run.finished_at is not None
    assert abs((now() - run.finished_at).total_seconds()) < 60
    assert [line.seq for line in await event_log.read_stored_events(database, run_id, 4)] == [5, 6]


async def test_a_batch_that_comes_late_is_refused_whole(database: Database, run_id: str) -> None:
    await event_log.append_events(database, run_id, 0, _texts(1, 3))

    assert await event_log.append_events(database, run_id, 0, _texts(1, 5)) is None

    assert [line.seq for line in await event_log.read_stored_events(database, run_id, 0)] == [1, 2, 3]


async def test_what_a_log_holds_is_counted_in_bytes(database: Database, run_id: str) -> None:
    stored = await event_log.append_events(
        database, run_id, 0, [TextEvent(seq=1, at_ms=0, stream="stdout", text="가" * 100)]
    )

    (line,) = await event_log.read_stored_events(database, run_id, 0)
    assert stored is not None
    assert stored.size == EVENT_ROW_BYTES + len(line.payload.encode()) > EVENT_ROW_BYTES + 300


@pytest.mark.parametrize("seqs", [(2, 3), (1, 3), (3, 4)])
async def test_a_gap_is_never_stored(database: Database, run_id: str, seqs: tuple[int, int]) -> None:
    events = [event for seq in seqs for event in _texts(seq, seq)]

    with pytest.raises(event_log.SequenceGap):
        await event_log.append_events(database, run_id, 0, events)

    assert await event_log.read_stored_events(database, run_id, 0) == []


async def test_nothing_follows_on_the_end(database: Database, run_id: str) -> None:
    await event_log.finish_run(database, run_id, Outcome.lost)

    assert await event_log.append_events(database, run_id, 1, _texts(2, 2)) is None


async def test_many_writers_at_once_store_every_event_once(database: Database, run_id: str) -> None:
    events = _texts(1, 60)

    async def write() -> None:
        while (at := await event_log.get_position(database, run_id)) is not None and at.last_seq < 60:
            await event_log.append_events(database, run_id, at.last_seq, events[at.last_seq : at.last_seq + 7])

    await asyncio.gather(*(write() for _ in range(4)))

    assert [line.seq for line in await event_log.read_stored_events(database, run_id, 0)] == list(range(1, 61))


async def test_a_run_given_up_by_many_ends_once(database: Database, run_id: str) -> None:
    await event_log.append_events(database, run_id, 0, _texts(1, 2))

    await asyncio.gather(*(event_log.finish_run(database, run_id, Outcome.lost) for _ in range(4)))

    lines = await event_log.read_stored_events(database, run_id, 0)
    assert [(line.seq, line.kind) for line in lines] == [(1, "text"), (2, "text"), (3, "finished")]


async def test_a_run_that_is_not_there_has_no_progress(database: Database) -> None:
    assert await event_log.get_position(database, "nothing") is None
    await event_log.finish_run(database, "nothing", Outcome.lost)
