"""A run that no process follows is adopted once, and one that is followed is left alone."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from sqlalchemy import select

from app.db import Database, now
from app.runs.adoption import UNFOLLOWED_TOPIC, adopt, find_unfollowed, release, renew
from app.runs.models import Run, RunState
from tests.factories.stored_runs import store_run


async def _run(db: Database, followed_for_s: float | None, state: str = RunState.queued) -> str:
    until = None if followed_for_s is None else now() + timedelta(seconds=followed_for_s)
    return await store_run(db, followed_until=until, state=state, outcome="ok" if state == RunState.finished else None)


async def _unfollowed(db: Database) -> list[str]:
    async with db.session() as session:
        return list(await find_unfollowed(session))


async def test_unfinished_runs_whose_time_is_over_are_unfollowed_oldest_first(database: Database) -> None:
    never = await _run(database, None)
    dead = await _run(database, -0.001, RunState.running)
    await _run(database, 60)
    await _run(database, None, RunState.finished)

    assert await _unfollowed(database) == [never, dead]


async def test_of_two_processes_that_adopt_at_once_one_gets_each_run(database: Database) -> None:
    runs = [await _run(database, -1) for _ in range(5)]

    async def take() -> list[str]:
        async with database.writing() as session:
            return list(await adopt(session, runs))

    one, other = await asyncio.gather(take(), take())

    assert sorted(one + other) == sorted(runs)
    assert await _unfollowed(database) == []


async def test_a_renewed_run_stays_with_its_process(database: Database) -> None:
    run_id = await _run(database, -1)

    async with database.writing() as session:
        await renew(session, [run_id])
    async with database.writing() as session:
        assert await adopt(session, [run_id]) == []


async def test_a_released_run_can_be_adopted_at_once_and_others_hear_of_it(database: Database) -> None:
    run_id = await _run(database, 60)

    with database.bus.subscribe(UNFOLLOWED_TOPIC) as subscription:
        async with database.writing() as session:
            await release(session, [run_id])
        assert await subscription.wait(0)
    async with database.writing() as session:
        assert await adopt(session, [run_id]) == [run_id]


async def test_a_finished_run_is_neither_renewed_nor_adopted(database: Database) -> None:
    run_id = await _run(database, None, RunState.finished)

    async with database.writing() as session:
        await renew(session, [run_id])
        assert await adopt(session, [run_id]) == []
        assert await session.scalar(select(Run.followed_until).where(Run.id == run_id)) is None
