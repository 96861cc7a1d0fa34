"""The sweeper of output: age, quotas, and the total of all visitors, on both databases."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event, func, select
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.cleanup import clean_up
from app.accounts.models import Role
from app.db import Base, Database, now
from app.runs import event_log
from app.runs.models import Run, RunEvent
from app.runs.quotas import QuotaLimits
from app.runs.sweeper import OutputSweeper
from tests.factories.accounts import store_account
from tests.factories.stored_output import store_run_with_output

KB = 1000
OLD = now() - timedelta(days=181)
LATELY = now() - timedelta(days=179)
KEEP = QuotaLimits(keep=timedelta(days=180))


async def _pruned(db: Database, *run_ids: str) -> str:
    """For each run ``k`` if its output was kept, ``p`` if it was pruned, ``-`` if the run is gone."""
    async with db.session() as session:
        runs = [await session.get(Run, run_id) for run_id in run_ids]
    return "".join("-" if run is None else "p" if run.pruned_at else "k" for run in runs)


async def test_old_output_goes_of_accounts_and_visitors_and_of_nobody_else(database: Database) -> None:
    account = await store_account(database)
    learners = (account.learner_id, "visitor")
    old = [await store_run_with_output(database, learner_id=learner, at=OLD) for learner in learners]
    late = [await store_run_with_output(database, learner_id=learner, at=LATELY) for learner in learners]
    live = await store_run_with_output(database, at=OLD, finish=False)

    for _ in range(2):  # twice is once
        await clean_up(database, [OutputSweeper(KEEP)])

    assert await _pruned(database, *old, *late, live) == "ppkkk"
    async with database.session() as session:
        notice, _finished = await event_log.read_events(session, old[0])
    assert notice.model_dump()["values"] == {"days": 181}


async def test_output_is_kept_for_ever_where_an_operator_wants_that(database: Database) -> None:
    old = await store_run_with_output(database, at=OLD)

    await clean_up(database, [OutputSweeper(QuotaLimits())])

    assert await _pruned(database, old) == "k"


async def test_a_quota_that_was_lowered_is_enforced_by_the_sweep(database: Database) -> None:
    account, instructor = await store_account(database), await store_account(database, Role.instructor)
    hours = [timedelta(hours=hours) for hours in range(9, 0, -1)]
    runs = {
        learner: [
            await store_run_with_output(database, 10, KB, learner_id=learner, cell=str(ago), at=now() - ago)
            for ago in hours
        ]
        for learner in (account.learner_id, instructor.learner_id, "greedy")
    }
    modest = await store_run_with_output(database, 10, KB, learner_id="modest")

    await clean_up(database, [OutputSweeper(QuotaLimits(account=80 * KB, staff=90 * KB, visitor=40 * KB))])

    assert await _pruned(database, *runs[instructor.learner_id]) == "pppkkkkkk"
    assert await _pruned(database, *runs[account.learner_id]) == "ppppkkkkk"
    assert await _pruned(database, *runs["greedy"]) == "pppppppkk"
    assert await _pruned(database, modest) == "k"


async def test_the_oldest_output_of_visitors_goes_where_all_together_have_too_much(database: Database) -> None:
    account = await store_account(database)
    of_account = await store_run_with_output(database, 10, KB, learner_id=account.learner_id, at=OLD)
    runs = [
        await store_run_with_output(database, 10, KB, learner_id=f"v{i}", at=now() - timedelta(hours=9 - i))
        for i in range(9)
    ]

    await clean_up(database, [OutputSweeper(QuotaLimits(visitors=50 * KB))])

    assert await _pruned(database, of_account, *runs) == "k" + "p" * 7 + "kk"


async def test_runs_of_visitors_go_whole_where_deleting_output_frees_too_little(database: Database) -> None:
    code = "#" * 50 * KB
    runs = [await store_run_with_output(database, 1, learner_id=f"v{i}", id=f"{i:032}", code=code) for i in range(4)]

    await clean_up(database, [OutputSweeper(QuotaLimits(visitors=120 * KB))])

    assert await _pruned(database, *runs) == "--pp"
    async with database.session() as session:
        assert await session.scalar(select(func.count()).select_from(RunEvent)) == 4


async def test_tries_of_visitors_go_after_their_other_runs(database: Database) -> None:
    code = "#" * 50 * KB
    tries = [await store_run_with_output(database, 1, id=f"a{i:031}", code=code, judgement=True) for i in range(2)]
    runs = [await store_run_with_output(database, 1, id=f"b{i:031}", code=code) for i in range(2)]

    await clean_up(database, [OutputSweeper(QuotaLimits(visitors=70 * KB))])

    assert await _pruned(database, *tries, *runs) == "-p--"


async def test_several_processes_sweep_at_once(database: Database) -> None:
    old = [await store_run_with_output(database, 300, at=OLD) for _ in range(5)]
    limits = QuotaLimits(visitor=20 * KB, visitors=10 * KB, keep=KEEP.keep)

    await asyncio.gather(*(clean_up(database, [OutputSweeper(limits)]) for _ in range(4)))

    assert await _pruned(database, *old) == "ppppp"
    async with database.session() as session:
        assert await session.scalar(select(func.count()).select_from(RunEvent)) == 10


async def test_a_sweep_that_finds_nothing_reads_no_table_from_end_to_end(database: Database) -> None:
    if database.engine.dialect.name != "sqlite":
        return
    await store_run_with_output(database, at=OLD)
    sweeper = OutputSweeper(QuotaLimits(account=1, visitor=1, visitors=1, keep=KEEP.keep))
    await clean_up(database, [sweeper])
    asked: list[tuple[str, tuple[Any, ...]]] = []
    event.listen(
        database.engine.sync_engine, "before_cursor_execute", lambda _c, _k, sql, args, *_: asked.append((sql, args))
    )

    async with database.writing() as session:
        while await sweeper(session):
            pass

    assert asked
    async with database.engine.connect() as connection:
        for sql, args in [each for each in asked if "WHERE 0 = 1" not in each[0]]:
            plan = [row.detail for row in await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", args)]
            for table in Base.metadata.tables:
                scans = [line for line in plan if line.startswith(f"SCAN {table}") and "COVERING INDEX" not in line]
                assert not scans, (sql, plan)


@pytest.mark.parametrize("phase", [0, 1, 2])
async def test_a_step_that_fails_ends_one_sweep_and_the_next_ones_go_on(database: Database, phase: int) -> None:
    sweeper = OutputSweeper(KEEP)
    phases = sweeper._phases

    async def fail(_session: AsyncSession) -> bool:
        raise OperationalError("DELETE", None, Exception("the disk is full"))

    sweeper._phases = tuple(fail if number == phase else each for number, each in enumerate(phases))  # type: ignore[assignment]
    for _ in range(3):
        await clean_up(database, [sweeper])
    sweeper._phases = phases
    old = await store_run_with_output(database, at=OLD)
    for _ in range(2):
        await clean_up(database, [sweeper])

    assert await _pruned(database, old) == "p"
