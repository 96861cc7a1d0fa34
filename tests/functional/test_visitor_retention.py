"""Visitors who do not come back: everything stored about them is deleted, and nothing of anybody else."""

from __future__ import annotations

import asyncio
import itertools
import secrets
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import event, func, insert, select, text

from app import tables
from app.accounts.cleanup import clean_up, run_cleanup
from app.accounts.merge import merge_visitor
from app.accounts.models import Account
from app.accounts.visitor_retention import VisitorRetention
from app.bus import Bus
from app.db import Base, Database, now
from app.exercises.models import PredictionAnswer, QuizAnswer
from app.feedback.models import LessonVote, ProblemReport
from app.main import FEATURES
from app.progress.models import LearnerTimeZone, LedgerEntry, LessonProgress
from app.runs.models import Run, RunEvent, RunState, ScratchCell
from app.runs.personal_data import move_runs, purge_runs
from tests.factories.accounts import store_account

RETENTION_RULES = [rule for feature in FEATURES for rule in feature.retention_rules]
KEPT = timedelta(days=396)
LONG_AGO = now() - KEPT - timedelta(days=1)
LATELY = now() - KEPT + timedelta(days=1)


def _run(learner: str, at: datetime, events: int) -> list[Base]:
    run_id = secrets.token_hex(16)
    facts = {"lesson": "c/a", "cell": "1", "code": "1", "topology": "cpu", "keras": 3, "language": "en"}
    run = Run(id=run_id, learner_id=learner, session_id="s", created_at=at, state=RunState.queued, **facts)
    lines = [RunEvent(run_id=run_id, seq=seq, kind="text", at_ms=0, payload="{}") for seq in range(1, events + 1)]
    return [run, *lines]


def _everything(learner: str, at: datetime, events: int = 3) -> list[Base]:
    """A row in each table that has rows of learners."""
    visit = LessonProgress(learner_id=learner, lesson="c/a", started_at=at, last_seen_at=at, anchor="")
    report = {"kind": "text", "page": "/en", "text": "A typo.", "language": "en"}
    answer = {"helpful": True, "comment": "Good.", "language": "en"}
    return [
        *_run(learner, at, events),
        ScratchCell(
            learner_id=learner,
            lesson="c/a",
            name="mine-1",
            kind="code",
            source="1",
            position=0,
            version=1,
            created_at=at,
            updated_at=at,
        ),
        LedgerEntry(learner_id=learner, kind="cell", subject="c/a#1", xp=10, occurred_at=at),
        visit,
        LearnerTimeZone(learner_id=learner, time_zone="Asia/Seoul", updated_at=at),
        QuizAnswer(
            learner_id=learner,
            lesson="c/a",
            quiz="q",
            first_choices="0",
            first_right=True,
            choices="0",
            answered_at=at,
            tries=1,
        ),
        PredictionAnswer(learner_id=learner, lesson="c/a", prediction="p", informed=False, answered_at=at),
        LessonVote(learner_id=learner, lesson="c/a", id=secrets.token_hex(16), updated_at=at, **answer),
        ProblemReport(
            id=secrets.token_hex(16), idempotency_key=secrets.token_hex(16), learner_id=learner, created_at=at, **report
        ),
    ]


async def _add(db: Database, *rows: Base) -> None:
    async with db.writing() as session:
        for _, alike in itertools.groupby(rows, type):  # a run before its events
            session.add_all(alike)
            await session.flush()


async def _count(db: Database, learner: str) -> int:
    """Rows that name the learner."""
    async with db.session() as session:
        counts = [
            await session.scalar(select(func.count()).select_from(t.learner.class_).where(t.learner == learner))
            for t in RETENTION_RULES
        ]
    return sum(count or 0 for count in counts)


async def test_a_visitor_whom_nobody_has_seen_is_forgotten_and_nobody_else(database: Database) -> None:
    account = await store_account(database)
    await _add(database, *_everything("gone", LONG_AGO), *_everything("here", LATELY))
    await _add(database, *_everything(account.learner_id, LONG_AGO))

    for _ in range(2):  # twice is once
        await clean_up(database, [VisitorRetention(RETENTION_RULES, KEPT)])

    assert await _count(database, "gone") == 0
    assert await _count(database, "here") == len(RETENTION_RULES)
    assert await _count(database, account.learner_id) == len(RETENTION_RULES)
    async with database.session() as session:
        assert await session.scalar(select(func.count()).select_from(RunEvent)) == 6
        said = (await session.execute(select(ProblemReport.learner_id, ProblemReport.text))).all()
    assert sorted(map(str, (learner for learner, _ in said))) == sorted(["None", "here", account.learner_id])
    assert {words for _, words in said} == {"A typo."}


async def test_any_trace_of_late_keeps_all_that_is_older(database: Database) -> None:
    for i, lately in enumerate(_everything("x", LATELY, events=0)):
        learner = f"visitor {i}"
        setattr(lately, "learner_id", learner)  # noqa: B010 - every model here has one
        older = [row for row in _everything(learner, LONG_AGO, events=0) if type(row) is not type(lately)]
        await _add(database, lately, *older)

    await clean_up(database, [VisitorRetention(RETENTION_RULES, KEPT)])

    assert [await _count(database, f"visitor {i}") for i in range(len(RETENTION_RULES))] == [
        len(RETENTION_RULES)
    ] * len(RETENTION_RULES)


async def test_everything_that_names_a_learner_is_swept() -> None:
    assert tables  # every table is known
    named = {
        column
        for mapper in Base.registry.mappers
        for column in mapper.columns
        if column.name == "learner_id" and mapper.class_.__name__ != "Account"
    }
    assert {trace.learner.property.columns[0] for trace in RETENTION_RULES} == named


async def test_a_visitor_who_belongs_to_an_account_is_left_alone(database: Database) -> None:
    new, old = await store_account(database), await store_account(database)
    await _add(database, *_everything("adopted", LONG_AGO), *_run("moved", LONG_AGO, 2))
    async with database.writing() as session:
        await merge_visitor(session, "adopted", await session.merge(new), (move_runs,), adopt=True)
        await merge_visitor(session, "moved", await session.merge(old), (move_runs,))
    await _add(database, *_run("moved", LONG_AGO, 1))  # came in late

    await clean_up(database, [VisitorRetention(RETENTION_RULES, KEPT)])

    assert await _count(database, "adopted") == len(RETENTION_RULES)
    assert (await _count(database, old.learner_id), await _count(database, "moved")) == (1, 1)


async def test_an_account_made_during_a_sweep_keeps_everything_or_nothing(
    database: Database,
) -> None:
    for i in range(10):
        account = await store_account(database)
        visitor = f"visitor {i}"
        await _add(database, *_everything(visitor, LONG_AGO))

        async def sign_up(account: Account = account, visitor: str = visitor, after: int = i) -> None:
            await asyncio.sleep(after / 500)
            async with database.writing() as session:
                await merge_visitor(session, visitor, await session.merge(account), (), adopt=True)

        await asyncio.gather(sign_up(), clean_up(database, [VisitorRetention(RETENTION_RULES, KEPT)]))
        assert await _count(database, visitor) in (0, len(RETENTION_RULES))


async def test_nobody_is_forgotten_where_visitors_are_kept_for_ever(database: Database) -> None:
    await _add(database, *_everything("gone", LONG_AGO))

    await clean_up(database, [VisitorRetention(RETENTION_RULES, None)])

    assert await _count(database, "gone") == len(RETENTION_RULES)


async def test_much_output_goes_in_steps_and_others_write_in_between(database: Database) -> None:
    await _add(database, *_everything("gone", LONG_AGO, events=2300), *_run("gone", LONG_AGO, 10))
    departed, steps = VisitorRetention(RETENTION_RULES, KEPT), []

    async def step(session: Any) -> bool:
        before = await session.scalar(select(func.count()).select_from(RunEvent))
        more = await departed(session)
        steps.append(before - await session.scalar(select(func.count()).select_from(RunEvent)))
        return more

    await clean_up(database, [step])

    assert max(steps) <= 500
    assert sum(steps) == 2310
    assert await _count(database, "gone") == 0


async def test_a_sweep_that_was_broken_off_is_gone_on_with_by_the_next(database: Database) -> None:
    await _add(database, *_everything("gone", LONG_AGO, events=2500))
    departed = VisitorRetention(RETENTION_RULES, KEPT)
    for _ in range(4):
        async with database.writing() as session:
            await departed(session)
    async with database.session() as session:
        left = await session.scalar(select(func.count()).select_from(RunEvent))
    assert left is not None
    assert 0 < left < 2500

    await clean_up(database, [VisitorRetention(RETENTION_RULES, KEPT)])

    assert await _count(database, "gone") == 0


async def test_everyone_is_looked_at_though_each_sweep_looks_at_some(database: Database, monkeypatch: Any) -> None:
    monkeypatch.setattr("app.accounts.visitor_retention._LEARNERS_PER_PAGE", 3)
    monkeypatch.setattr("app.accounts.visitor_retention._PAGES_PER_SWEEP", 2)
    rows = [{"learner_id": secrets.token_hex(32), "time_zone": "UTC", "updated_at": LONG_AGO} for _ in range(40)]
    async with database.writing() as session:
        await session.execute(insert(LearnerTimeZone), rows)
    departed, left = VisitorRetention(RETENTION_RULES, KEPT), [40]

    while left[-1] and len(left) < 20:
        await clean_up(database, [departed])
        async with database.session() as session:
            left.append(await session.scalar(select(func.count()).select_from(LearnerTimeZone)) or 0)

    assert left[-1] == 0
    assert all(before - after <= 6 for before, after in itertools.pairwise(left))


async def test_one_who_cannot_be_forgotten_is_in_nobodys_way(database: Database, monkeypatch: Any) -> None:
    await _add(database, *(row for name in "abc" for row in _everything(name, LONG_AGO)))

    async def forget(session: Any, learner: str, *how: Any) -> int:
        if learner == "a":
            await session.execute(text("SELECT broken"))
        return await purge_runs(session, learner, *how)

    runs, *others = RETENTION_RULES
    departed = VisitorRetention([type(runs)(runs.learner, runs.at, forget), *others], KEPT)
    for _ in range(3):
        await clean_up(database, [departed])

    assert [await _count(database, name) for name in "abc"] == [len(RETENTION_RULES), 0, 0]


async def test_a_sweep_reads_no_table_from_end_to_end(database: Database) -> None:
    if database.engine.dialect.name != "sqlite":
        return
    await _add(database, *_everything("gone", LONG_AGO))
    asked: list[tuple[str, Any]] = []
    event.listen(
        database.engine.sync_engine, "before_cursor_execute", lambda _c, _k, sql, args, *_: asked.append((sql, args))
    )
    departed = VisitorRetention(RETENTION_RULES, KEPT)

    async with database.writing() as session:
        while await departed(session):
            pass

    assert len(asked) > 10
    async with database.engine.connect() as connection:
        for sql, args in [each for each in asked if not each[0].endswith("WHERE 0 = 1")]:
            plan = [row.detail for row in await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", args)]
            for table in Base.metadata.tables:
                assert not any(f"SCAN {table}" in line for line in plan), (sql, plan)


async def test_the_first_sweep_comes_soon_after_the_start(database: Database) -> None:
    swept: list[float] = []
    bus = Bus()

    async def note(_session: Any) -> bool:
        swept.append(time.monotonic())
        return False

    async with asyncio.timeout(10):
        keeping = asyncio.create_task(run_cleanup(database, bus, [note], first_s=0.05))
        await _until(lambda: bool(swept))
        bus.close()
        await keeping

    assert len(swept) == 1


async def test_the_end_of_the_server_does_not_wait_for_a_sweep(database: Database) -> None:
    bus = Bus()
    steps = 0

    async def endless(_session: Any) -> bool:
        nonlocal steps
        steps += 1
        return True

    async with asyncio.timeout(10):
        keeping = asyncio.create_task(run_cleanup(database, bus, [endless], first_s=0))
        await _until(lambda: steps > 3)
        bus.close()
        await keeping


async def _until(true: Callable[[], bool]) -> None:
    while not true():  # noqa: ASYNC110 - what is waited for has no event
        await asyncio.sleep(0.01)
