"""A run's awards are stored with its end: all of them or none, on both databases."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.exc import OperationalError

from app.accounts.merge import merge_visitor
from app.accounts.models import Account
from app.db import Database, now
from app.lessons.catalog import Catalog
from app.progress.achievement_catalog import AchievementCatalog
from app.progress.models import LearnerTimeZone, LedgerEntry
from app.progress.service import ProgressService
from app.runs import event_log
from app.runs.awards import RunAwards
from app.runs.models import Run, RunState
from app.runs.personal_data import move_runs
from runners.wire.protocol import Event, FinishedEvent, NoticeEvent, Outcome, TextEvent
from tests.factories.accounts import store_account
from tests.factories.course import LESSON, write_course

_RAISING = """
```{code-cell} python
:name: fails
:tags: [raises-exception]

raise ValueError
```
"""
_SCALED = "tf.nn.compute_average_loss(x, global_batch_size=8)"


@pytest.fixture
def progress(tmp_path: Path) -> ProgressService:
    root = write_course(tmp_path / "lessons")
    with (root / "small" / "first" / "lesson.md").open("a") as lesson:
        lesson.write(_RAISING)
    catalog = Catalog(root, quiet=True)
    catalog.reload()
    return ProgressService(catalog, AchievementCatalog(catalog))


async def _a_run(
    db: Database, name: str, cell: str = "hello", topology: str = "gpu:4", code: str = "pass", visitor: str = "me"
) -> str:
    async with db.writing() as session:
        session.add(
            Run(
                id=name,
                learner_id=visitor,
                session_id="s",
                lesson=LESSON,
                cell=cell,
                code=code,
                topology=topology,
                keras=3,
                language="en",
                created_at=now(),
                state=RunState.running,
                last_seq=0,
                stored_bytes=0,
            )
        )
    return name


def _end(seq: int = 1, outcome: Outcome = Outcome.ok) -> FinishedEvent:
    return FinishedEvent(seq=seq, at_ms=seq, outcome=outcome, duration_ms=1000)


async def _facts(db: Database) -> dict[str, set[str]]:
    facts: dict[str, set[str]] = {}
    async with db.session() as session:
        for entry in await session.scalars(select(LedgerEntry)):
            facts.setdefault(entry.kind, set()).add(entry.subject)
    return facts


async def test_the_end_of_a_run_and_what_it_earns_are_stored_together(
    database: Database, progress: ProgressService
) -> None:
    run = await _a_run(database, "1")
    text = TextEvent(seq=1, at_ms=1, stream="stdout", text="1")

    stored = await event_log.append_events(database, run, 0, [text], RunAwards(progress))
    assert stored is not None
    assert await _facts(database) == {}
    stored = await event_log.append_events(database, run, 1, [_end(2)], RunAwards(progress))

    assert stored is not None
    assert (await _facts(database))["cell"] == {f"{LESSON}#hello"}


async def test_writers_that_race_for_the_end_award_it_once(database: Database, progress: ProgressService) -> None:
    run = await _a_run(database, "1")

    stored = await asyncio.gather(
        *(event_log.append_events(database, run, 0, [_end()], RunAwards(progress)) for _ in range(8))
    )

    assert len([one for one in stored if one is not None]) == 1
    assert (await _facts(database))["cell"] == {f"{LESSON}#hello"}


async def test_a_second_run_of_the_same_cell_earns_nothing(database: Database, progress: ProgressService) -> None:
    await event_log.append_events(database, await _a_run(database, "1"), 0, [_end()], RunAwards(progress))
    earned = await _facts(database)
    await event_log.append_events(database, await _a_run(database, "2"), 0, [_end()], RunAwards(progress))

    assert await _facts(database) == earned


@pytest.mark.parametrize(("cell", "earns"), [("fails", True), ("hello", False)])
async def test_an_error_counts_where_the_lesson_announces_it(
    database: Database, progress: ProgressService, cell: str, earns: bool
) -> None:
    run = await _a_run(database, "1", cell)

    await event_log.append_events(database, run, 0, [_end(outcome=Outcome.error)], RunAwards(progress))

    facts = await _facts(database)
    assert ("cell" in facts) is earns
    assert "topology" not in facts


async def test_a_cell_that_is_no_longer_there_counts_all_the_same(
    database: Database, progress: ProgressService
) -> None:
    await event_log.append_events(database, await _a_run(database, "1", "gone"), 0, [_end()], RunAwards(progress))

    facts = await _facts(database)
    assert facts["cell"] == {f"{LESSON}#gone"}
    assert "own" not in facts


@pytest.mark.parametrize(("code", "survived"), [("cluster-restarted", True), ("member-ended", False)])
async def test_a_notice_of_an_earlier_batch_tells_that_a_worker_was_lost(
    database: Database, progress: ProgressService, code: str, survived: bool
) -> None:
    run = await _a_run(database, "1", topology="workers:2")
    notice: Event = NoticeEvent(seq=1, at_ms=1, code=code, text="…")

    await event_log.append_events(database, run, 0, [notice], RunAwards(progress))
    await event_log.append_events(database, run, 1, [_end(2)], RunAwards(progress))

    assert ("survived" in await _facts(database)) is survived


async def test_only_the_first_run_of_a_cell_is_a_first_try(database: Database, progress: ProgressService) -> None:
    await event_log.append_events(database, await _a_run(database, "1", code="x"), 0, [_end(outcome=Outcome.error)])
    await event_log.append_events(database, await _a_run(database, "2", code=_SCALED), 0, [_end()], RunAwards(progress))
    assert "scaled" not in await _facts(database)

    await event_log.append_events(
        database, await _a_run(database, "3", "alone", code=_SCALED), 0, [_end()], RunAwards(progress)
    )
    assert (await _facts(database))["scaled"] == {f"{LESSON}#alone"}


async def test_the_day_is_that_of_the_learners_clock(
    database: Database, progress: ProgressService, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = now().replace(year=2026, month=11, day=21, hour=20, minute=30)
    monkeypatch.setattr("app.runs.awards.now", lambda: late)
    async with database.writing() as session:
        session.add(LearnerTimeZone(learner_id="me", time_zone="Asia/Seoul", updated_at=now()))

    await event_log.append_events(database, await _a_run(database, "1"), 0, [_end()], RunAwards(progress))

    facts = await _facts(database)
    assert (facts["day"], facts["hour"]) == ({"2026-11-22"}, {"05"})


async def test_what_fails_of_ours_loses_the_award_and_never_the_output(
    database: Database, progress: ProgressService, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter = progress.ledger.enter

    async def half(*arguments: Any) -> None:
        await enter(*arguments)
        raise KeyError("ours")

    monkeypatch.setattr(progress.ledger, "enter", half)
    run = await _a_run(database, "1")

    assert await event_log.append_events(database, run, 0, [_end()], RunAwards(progress)) is not None

    assert await _facts(database) == {}
    state = await event_log.get_position(database, run)
    assert state is not None
    assert state.finished


async def test_a_database_that_fails_meanwhile_stores_neither(
    database: Database, progress: ProgressService, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise OperationalError("INSERT", {}, Exception("disk full"))

    monkeypatch.setattr(progress.ledger, "enter", broken)
    run = await _a_run(database, "1")

    with pytest.raises(OperationalError):
        await event_log.append_events(database, run, 0, [_end()], RunAwards(progress))

    state = await event_log.get_position(database, run)
    assert state is not None
    assert not state.finished


@pytest.mark.timeout(120)
async def test_runs_that_end_while_their_browsers_sign_in_are_the_accounts_whole(
    database: Database, progress: ProgressService
) -> None:
    account = await store_account(database)
    browsers = ("one", "two", "three")
    runs = [
        (await _a_run(database, f"{browser}-{cell}", cell, visitor=browser))
        for browser in browsers
        for cell in ("hello", "alone")
    ]

    async def sign_in(browser: str) -> None:
        async with database.writing() as session:
            mine = await session.get_one(Account, account.id)
            await merge_visitor(session, browser, mine, (move_runs, progress.ledger.merge))

    async def end(run: str, delay_s: float) -> None:
        await asyncio.sleep(delay_s)
        assert await event_log.append_events(database, run, 0, [_end()], RunAwards(progress))

    ends = [end(run, number / 200) for number, run in enumerate(runs)]
    await asyncio.gather(*map(sign_in, browsers), *ends, *map(sign_in, browsers))

    async with database.session() as session:
        owners = {row.learner_id for row in await session.scalars(select(LedgerEntry))}
        cells = [row for row in await session.scalars(select(LedgerEntry)) if row.kind == "cell"]
        runners = set(await session.scalars(select(Run.learner_id)))
    assert owners == runners == {account.learner_id}
    assert len(cells) == 2
