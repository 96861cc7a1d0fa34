"""Output is never lost: followers against a supervisor that breaks, restarts, forgets and sends nonsense."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import delete, func, select, update

from app.bus import publish_on_commit
from app.db import now
from app.main import create_app
from app.runs import event_log
from app.runs.adoption import UNFOLLOWED_TOPIC
from app.runs.batching import BATCH_INTERVAL_S, MAX_BATCH_SIZE
from app.runs.follower import RunFollower
from app.runs.machines import lesson_machines
from app.runs.models import Run, RunEvent
from app.runs.service import start_run
from app.settings import Settings
from tests.factories.browser_client import browser_client, press_run
from tests.factories.scripted_supervisor import ScriptedSupervisor

_PATIENCE_S = 60.0
"""For what takes a moment unless the machine is busy."""


async def _stored(app: FastAPI, run_id: str) -> list[RunEvent]:
    async with app.state.db.session() as session:
        events = select(RunEvent).where(RunEvent.run_id == run_id).order_by(RunEvent.seq)
        return list(await session.scalars(events))


async def _until_stored(app: FastAPI, run_id: str, count: int) -> list[RunEvent]:
    async with asyncio.timeout(_PATIENCE_S):
        while len(events := await _stored(app, run_id)) < count:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return events


async def _until_finished(app: FastAPI, run_id: str) -> Run:
    async with asyncio.timeout(_PATIENCE_S):
        while True:
            async with app.state.db.session() as session:
                run: Run = await session.get_one(Run, run_id)
            if run.finished:
                return run
            await asyncio.sleep(0.02)


async def _until_nobody_watches(*apps: FastAPI) -> None:
    """Each process has seen the end of its runs, so it stores nothing more."""
    async with asyncio.timeout(_PATIENCE_S):
        while any(app.state.dispatcher.followers.watching for app in apps):  # noqa: ASYNC110 - the followers have no event for it
            await asyncio.sleep(0.02)


async def test_events_are_stored_as_they_come_and_acknowledged_afterwards(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    run = await press_run(client)
    scripted = await supervisor.run(run["id"])

    await supervisor.emit(scripted, kind="started")
    await supervisor.say(scripted, "x")
    await _until_stored(app, run["id"], 2)
    async with asyncio.timeout(_PATIENCE_S):
        while scripted.acknowledged < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    await supervisor.finish(scripted, duration_ms=7, first_output_ms=3, peak_bytes=5_000_000_000)

    finished = await _until_finished(app, run["id"])
    assert (finished.outcome, finished.duration_ms, finished.first_output_ms) == ("ok", 7, 3)
    assert finished.peak_bytes == 5_000_000_000
    assert finished.started_at is not None
    assert finished.finished_at is not None
    assert finished.last_seq == 3


async def test_a_broken_stream_is_resumed_without_a_gap_or_a_double(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    run = await press_run(client)
    scripted = await supervisor.run(run["id"])

    for number in range(60):
        await supervisor.say(scripted, f"{number} ")
        if number % 20 == 10:
            await supervisor.break_streams()
            await asyncio.sleep(0.05)
    await supervisor.finish(scripted)

    await _until_finished(app, run["id"])
    assert [event.seq for event in await _stored(app, run["id"])] == list(range(1, 62))


async def test_a_supervisor_away_for_a_while_and_back_with_its_memory_loses_nothing(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    run = await press_run(client)
    scripted = await supervisor.run(run["id"])
    await supervisor.say(scripted, "a")
    await _until_stored(app, run["id"], 1)

    await supervisor.stop()
    await asyncio.sleep(0.5)
    await supervisor.say(scripted, "b")
    await supervisor.finish(scripted)
    await supervisor.start()

    assert (await _until_finished(app, run["id"])).outcome == "ok"
    assert [event.kind for event in await _stored(app, run["id"])] == ["text", "text", "finished"]


async def test_a_run_that_a_restarted_supervisor_no_longer_knows_is_lost_once(
    settings: Settings, supervisor: ScriptedSupervisor
) -> None:
    one, other = create_app(settings), create_app(settings)
    async with one.router.lifespan_context(one), other.router.lifespan_context(other), browser_client(one) as client:
        run = await press_run(client)
        await supervisor.say(await supervisor.run(run["id"]), "before")
        other.state.dispatcher.followers.watch(run["id"])
        await _until_stored(one, run["id"], 1)

        await supervisor.restart()

        assert (await _until_finished(one, run["id"])).outcome == "lost"
        await _until_nobody_watches(one, other)
        events = await _stored(one, run["id"])
        assert [(event.seq, event.kind) for event in events] == [(1, "text"), (2, "finished")]
        assert supervisor.submitted == [run["id"]]


async def test_a_run_stored_but_never_submitted_is_submitted_when_the_next_process_starts(
    settings: Settings, supervisor: ScriptedSupervisor
) -> None:
    supervisor.answer = ["at last"]
    died = create_app(settings)
    async with died.router.lifespan_context(died):
        lesson = died.state.catalog.lesson("small", "first", "en")
        async with died.state.db.writing() as session:
            run = await start_run(
                session, "v" * 64, lesson, lesson.cells[0], lesson_machines(lesson)[0], "print('at last')", 32
            )

    heir = create_app(settings)
    async with heir.router.lifespan_context(heir):
        assert (await _until_finished(heir, run.id)).outcome == "ok"

    assert supervisor.submitted == [run.id]
    assert (await supervisor.run(run.id)).request.code == "print('at last')"


async def test_a_run_waits_for_a_supervisor_that_is_down_when_the_process_starts(
    settings: Settings, supervisor: ScriptedSupervisor
) -> None:
    before = create_app(settings)
    async with before.router.lifespan_context(before), browser_client(before) as client:
        run = await press_run(client)
        scripted = await supervisor.run(run["id"])
        await supervisor.say(scripted, "a")
        await _until_stored(before, run["id"], 1)
    await supervisor.stop()

    after = create_app(settings)
    async with after.router.lifespan_context(after):
        await asyncio.sleep(0.3)
        await supervisor.start()
        await supervisor.finish(scripted)
        assert (await _until_finished(after, run["id"])).outcome == "ok"


async def test_runs_of_a_live_process_are_left_alone_and_adopted_when_that_ends(
    settings: Settings, supervisor: ScriptedSupervisor
) -> None:
    one, other = create_app(settings), create_app(settings)
    async with other.router.lifespan_context(other):
        async with one.router.lifespan_context(one), browser_client(one) as client:
            run = await press_run(client)
            scripted = await supervisor.run(run["id"])
            await supervisor.say(scripted, "a")
            await _until_stored(one, run["id"], 1)
            assert not await other.state.dispatcher.followers._adopt()
        await supervisor.finish(scripted)
        async with other.state.db.writing() as session:
            publish_on_commit(session, UNFOLLOWED_TOPIC)  # with SQLite, it does not arrive from the other process
        assert (await _until_finished(other, run["id"])).outcome == "ok"
        assert [event.seq for event in await _stored(other, run["id"])] == [1, 2]


async def test_several_processes_following_one_run_store_each_event_once(
    settings: Settings, supervisor: ScriptedSupervisor
) -> None:
    apps = [create_app(settings) for _ in range(3)]
    one, two, three = apps
    async with (
        one.router.lifespan_context(one),
        two.router.lifespan_context(two),
        three.router.lifespan_context(three),
        browser_client(one) as client,
    ):
        run = await press_run(client)
        scripted = await supervisor.run(run["id"])
        for app in apps:
            app.state.dispatcher.followers.watch(run["id"])
        for number in range(400):
            await supervisor.say(scripted, str(number))
            if number % 40 == 0:
                await asyncio.sleep(0.02)
        await supervisor.finish(scripted)
        await _until_finished(one, run["id"])
        await _until_nobody_watches(*apps)

        events = await _stored(one, run["id"])
        assert [event.seq for event in events] == list(range(1, 402))


async def test_a_process_that_was_overtaken_lets_go_of_what_it_will_never_be_sent(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.runs.follower._IDLE_CHECK_S", 0.1)
    supervisor.answer = ["a"]
    run = await press_run(client)
    await _until_finished(app, run["id"])
    dispatcher = app.state.dispatcher
    late = RunFollower(run["id"], app.state.db, dispatcher.runner, app.state.bus, dispatcher.quotas)
    stale = event_log.LogPosition(last_seq=0, finished=False, submitted=True, created_at=now(), session_id="s")

    async with asyncio.timeout(_PATIENCE_S):
        await late._carry(stale)
        await late.follow()

    assert len(await _stored(app, run["id"])) == 3


async def test_events_that_do_not_follow_on_one_another_are_never_stored(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.runs.follower._MAX_BACKOFF_S", 0.05)
    supervisor.garbled = {2}
    run = await press_run(client)
    scripted = await supervisor.run(run["id"])
    await supervisor.say(scripted, "a")
    await _until_stored(app, run["id"], 1)
    await supervisor.say(scripted, "b", "c")

    finished = await _until_finished(app, run["id"])

    assert finished.outcome == "lost"
    assert [(event.seq, event.kind) for event in await _stored(app, run["id"])] == [(1, "text"), (2, "finished")]


async def test_much_output_is_stored_in_few_transactions(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    _count_batches(monkeypatch, sizes)
    run = await press_run(client)
    scripted = await supervisor.run(run["id"])

    began = time.monotonic()
    for number in range(2000):
        await supervisor.say(scripted, str(number))
    await supervisor.finish(scripted)
    await _until_finished(app, run["id"])

    assert sum(sizes) == 2001
    assert max(sizes) <= MAX_BATCH_SIZE
    full = 2000 // MAX_BATCH_SIZE
    assert len(sizes) <= 6 + full + (time.monotonic() - began) / BATCH_INTERVAL_S


async def test_a_database_that_fails_for_a_moment_loses_nothing(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, failures = event_log.append_events, iter([OSError("disk"), OSError("disk")])

    async def append_at_last(*arguments: Any) -> Any:
        if (failure := next(failures, None)) is not None:
            raise failure
        return await append(*arguments)

    monkeypatch.setattr(event_log, "append_events", append_at_last)
    supervisor.answer = ["a", "b"]
    run = await press_run(client)

    assert (await _until_finished(app, run["id"])).outcome == "ok"
    assert len(await _stored(app, run["id"])) == 4


async def test_a_run_that_vanished_from_the_database_is_dropped_and_its_code_ends(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    run = await press_run(client)
    scripted = await supervisor.run(run["id"])
    await supervisor.say(scripted, "x")
    await _until_stored(app, run["id"], 1)
    async with app.state.db.writing() as session:
        await session.execute(update(Run).where(Run.id == run["id"]).values(learner_id="x"))
        await session.execute(delete(RunEvent))
        await session.delete(await session.get_one(Run, run["id"]))
    await supervisor.say(scripted, "x")

    await _until_nobody_watches(app)
    assert scripted.stopped
    async with asyncio.timeout(_PATIENCE_S):
        await supervisor.session_ended(scripted.request.session)
    async with app.state.db.session() as session:
        assert await session.scalar(select(func.count()).select_from(RunEvent)) == 0


def _count_batches(monkeypatch: pytest.MonkeyPatch, sizes: list[int]) -> None:
    append = event_log.append_events

    async def counted(db: Any, run_id: str, after: int, events: Any, *more: Any) -> Any:
        stored = await append(db, run_id, after, events, *more)
        sizes.append(len(events))
        return stored

    monkeypatch.setattr(event_log, "append_events", counted)
