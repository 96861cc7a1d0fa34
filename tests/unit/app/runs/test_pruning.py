"""Deleting output: what remains, what readers see, and which runs are pruned first, on both databases."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest
from sqlalchemy import func, select

from app.db import Database, now
from app.progress.models import LedgerEntry
from app.runs import event_log, pruning
from app.runs.models import EVENT_ROW_BYTES, RUN_ROW_BYTES, Run, RunEvent
from app.runs.pruning import DeletionReason, lock_pruning, make_room, prune_output, stored_bytes_of
from runners.wire.protocol import EVENT_ADAPTER, Event, FinishedEvent, NoticeEvent, Outcome
from tests.factories.stored_output import store_run_with_output

KB = 1000


async def _run(db: Database, run_id: str) -> Run | None:
    async with db.session() as session:
        return await session.get(Run, run_id)


async def _events(db: Database, run_id: str) -> list[Event]:
    async with db.session() as session:
        return await event_log.read_events(session, run_id)


async def _prune(db: Database, run_ids: Sequence[str], reason: DeletionReason = DeletionReason.quota) -> int:
    async with db.writing() as session:
        await lock_pruning(session)
        return await prune_output(session, run_ids, reason)


async def _pruned(db: Database, *run_ids: str) -> str:
    """For each run ``k`` if its output was kept, ``p`` if it was pruned, ``-`` if the run is gone."""
    runs = [await _run(db, run_id) for run_id in run_ids]
    return "".join("-" if run is None else "p" if run.pruned_at else "k" for run in runs)


async def test_a_pruned_run_keeps_its_code_its_outcome_and_a_notice(database: Database) -> None:
    run_id = await store_run_with_output(database, 50, at=now() - timedelta(days=90), code="print(1)")
    async with database.writing() as session:
        session.add(LedgerEntry(learner_id="v", kind="cell", subject="small/first#hello", xp=10, occurred_at=now()))

    freed = await _prune(database, [run_id], DeletionReason.age)

    notice, finished = await _events(database, run_id)
    assert isinstance(notice, NoticeEvent)
    assert (notice.seq, notice.code, notice.values) == (51, "output-expired", {"days": 90})
    assert "after 90 days" in notice.text
    assert (finished.seq, finished.kind) == (52, "finished")
    run = await _run(database, run_id)
    assert run is not None
    assert (run.state, run.outcome, run.code, run.last_seq, run.duration_ms) == ("finished", "ok", "print(1)", 52, 5)
    payloads = [event.model_dump_json() for event in (notice, finished)]
    assert run.stored_bytes == RUN_ROW_BYTES + 8 + sum(EVENT_ROW_BYTES + len(payload) for payload in payloads)
    assert freed > 49 * (100 + EVENT_ROW_BYTES)
    async with database.session() as session:
        assert await session.scalar(select(func.sum(LedgerEntry.xp))) == 10


async def test_whoever_had_read_a_part_gets_the_notice_and_the_end(database: Database) -> None:
    run_id = await store_run_with_output(database, 50)
    await _prune(database, [run_id])

    assert [line.kind for line in await event_log.read_stored_events(database, run_id, 20)] == ["notice", "finished"]
    assert [line.kind for line in await event_log.read_stored_events(database, run_id, 51)] == ["finished"]


async def test_a_run_that_printed_nothing_gets_no_notice(database: Database) -> None:
    run_id = await store_run_with_output(database, 0)

    await _prune(database, [run_id])

    assert [event.kind for event in await _events(database, run_id)] == ["started", "finished"]
    assert await _pruned(database, run_id) == "p"  # nobody looks at it again


async def test_a_run_that_is_still_going_is_never_pruned(database: Database) -> None:
    run_id = await store_run_with_output(database, 50, finish=False)

    assert await _prune(database, [run_id]) == 0
    await make_room(database, "v", 1)

    assert len(await _events(database, run_id)) == 51
    await event_log.append_events(database, run_id, 51, [FinishedEvent(seq=52, at_ms=1, outcome=Outcome.ok)])
    assert len(await _events(database, run_id)) == 52


async def test_much_output_goes_in_steps_and_the_notice_is_there_from_the_first(database: Database) -> None:
    run_id = await store_run_with_output(database, 1200)
    left = []

    while await _pruned(database, run_id) == "k":
        await _prune(database, [run_id])
        events = await _events(database, run_id)
        assert [event.kind for event in events[-2:]] == ["notice", "finished"]
        left.append(len(events))

    assert left == [702, 202, 2]


async def test_a_step_that_was_rolled_back_has_done_nothing(database: Database) -> None:
    run_id = await store_run_with_output(database, 5)

    async with database.session() as session:
        await prune_output(session, [run_id], DeletionReason.quota)
        await session.rollback()

    assert len(await _events(database, run_id)) == 7
    assert await _pruned(database, run_id) == "k"


async def test_superseded_output_goes_first_then_the_oldest_then_superseded_runs(
    database: Database,
) -> None:
    cells = "abab"  # each twice; then c, the newest
    ids = [
        await store_run_with_output(database, 10, KB, cell=cell, at=now() - timedelta(hours=9 - i))
        for i, cell in enumerate(cells + "c")
    ]
    other = await store_run_with_output(database, 10, KB, learner_id="other", at=now() - timedelta(days=9))
    states = []
    for kept in (4.5, 3.5, 2.5, 1.6, 0.0):
        await make_room(database, "v", int(kept * 13_600 / 0.9))
        states.append(await _pruned(database, *ids))

    assert states == ["pkkkk", "ppkkk", "pppkk", "ppppk", "--ppk"]
    assert await _pruned(database, other) == "k"


async def test_the_last_tries_of_an_exercise_go_after_everything_else(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "TRIES_KEPT", 2)
    code = "#" * 50 * KB
    tries = [
        await store_run_with_output(database, 1, code=code, judgement=True, at=now() - timedelta(days=9 - number))
        for number in range(4)
    ]
    runs = [
        await store_run_with_output(database, 1, code=code, at=now() - timedelta(hours=9 - number))
        for number in range(4)
    ]
    states = []
    for kept in (360, 260, 160, 110, 60):
        await make_room(database, "v", int(kept * KB / 0.9))
        states.append(await _pruned(database, *tries) + " " + await _pruned(database, *runs))

    assert states == ["--pp pppk", "--pp -ppk", "--pp ---k", "---p ---k", "---p ---k"]


async def test_room_is_made_down_to_nine_tenths_so_that_the_next_batch_fits(database: Database) -> None:
    for hours in range(20, 0, -1):
        await store_run_with_output(database, 10, KB, at=now() - timedelta(hours=hours))
    async with database.session() as session:
        before = await stored_bytes_of(session, "v")

    assert await make_room(database, "v", before) == before
    kept = await make_room(database, "v", before, 1)

    assert 0.8 * before < kept <= 0.9 * before


async def test_code_alone_is_bounded_too_and_the_latest_run_of_a_cell_stays(database: Database) -> None:
    old = [
        await store_run_with_output(database, 1, code="#" * 50 * KB, at=now() - timedelta(hours=9)) for _ in range(9)
    ]
    latest = await store_run_with_output(database, 1, code="#" * 50 * KB, cell="alone", at=now() - timedelta(hours=5))
    newest = await store_run_with_output(database, 1, code="print(1)")

    kept = await make_room(database, "v", 100 * KB)

    assert kept < 100 * KB
    assert await _pruned(database, *old, latest, newest) == "-" * 9 + "pk"


async def test_what_was_counted_is_what_is_there(database: Database) -> None:
    ids = [await store_run_with_output(database, lines, at=now() - timedelta(hours=lines)) for lines in (1, 30, 700)]
    await _prune(database, ids[1:2])
    await store_run_with_output(database, 5, learner_id="other")

    async with database.session() as session:
        counted = await stored_bytes_of(session, "v")
        payloads = select(RunEvent.payload).join(Run, Run.id == RunEvent.run_id).where(Run.learner_id == "v")
        there = [len(payload) for payload in await session.scalars(payloads)]
    assert counted == 3 * (RUN_ROW_BYTES + 1) + sum(EVENT_ROW_BYTES + size for size in there)


async def test_several_concurrent_prunings_prune_once(database: Database) -> None:
    ids = [await store_run_with_output(database, 300, at=now() - timedelta(hours=9 - i)) for i in range(4)]

    await asyncio.gather(*(make_room(database, "v", 20 * KB) for _ in range(5)))

    assert await _pruned(database, *ids) == "---k"
    async with database.session() as session:
        assert await session.scalar(select(func.count()).select_from(RunEvent)) == 302


async def test_readers_and_writers_go_on_while_output_is_deleted(database: Database) -> None:
    old = await store_run_with_output(database, 2000, at=now() - timedelta(hours=1))
    live = await store_run_with_output(database, 0, finish=False)
    seen: set[tuple[str, ...]] = set()

    async def read() -> None:
        while await _pruned(database, old) == "k":
            seen.add(tuple(event.kind for event in (await _events(database, old))[-2:]))

    async def write() -> None:
        for seq in range(2, 40):
            event = EVENT_ADAPTER.validate_python(
                {"kind": "text", "seq": seq, "at_ms": 0, "stream": "stdout", "text": "x"}
            )
            assert await event_log.append_events(database, live, seq - 1, [event])

    await asyncio.gather(read(), write(), make_room(database, "v", 100 * KB))

    assert seen <= {("text", "finished"), ("notice", "finished")}
    assert len(await _events(database, live)) == 39
