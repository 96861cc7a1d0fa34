"""The ledger on both databases: nothing twice, nothing lost, in whatever order facts and merges arrive."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import func, select

from app.accounts.models import MergedVisitor
from app.db import Database, now
from app.progress import lesson_progress
from app.progress.events import LearningEvent
from app.progress.ledger import AwardResult, lock_current_learner
from app.progress.lesson_progress import LessonVisit
from app.progress.models import LearnerTimeZone, LedgerEntry, LessonProgress
from app.progress.requirements import UNJUDGED_XP
from tests.factories.accounts import store_account
from tests.factories.hypothesis_examples import example_count
from tests.factories.progress import EVERYTHING, POSSIBLE, small_ledger

_LEDGER = small_ledger()
_NIGHT = datetime(2026, 11, 20, 23, tzinfo=UTC)


async def _award(db: Database, learner: str, facts: Iterable[LearningEvent]) -> AwardResult:
    async with db.writing() as session:
        return await _LEDGER.award(session, learner, facts)


async def _merge(db: Database, one: str, other: str) -> dict[str, int]:
    async with db.writing() as session:
        return dict(await _LEDGER.merge(session, one, other))


async def _entries(db: Database, learner: str) -> dict[tuple[str, str], tuple[int, datetime]]:
    async with db.session() as session:
        rows = await session.scalars(select(LedgerEntry).where(LedgerEntry.learner_id == learner))
        return {(row.kind, row.subject): (row.xp, row.occurred_at) for row in rows}


async def _xp(db: Database, learner: str) -> int:
    return sum(xp for xp, _ in (await _entries(db, learner)).values())


async def test_a_fact_is_awarded_once_with_what_follows_from_it(database: Database) -> None:
    first = await _award(database, "me", [LearningEvent("cell", "c/a#1", 10)])
    again = await _award(database, "me", [LearningEvent("cell", "c/a#1", 10), LearningEvent("cell", "c/a#1", 10)])

    assert set(first.entries) == {LearningEvent("cell", "c/a#1", 10), LearningEvent("achievement", "first", 20)}
    assert first.xp == 30
    assert (again.entries, again.xp) == ((), 30)
    assert await _xp(database, "me") == 30


async def test_nobody_gets_what_another_learner_did(database: Database) -> None:
    await _award(database, "me", POSSIBLE)

    assert await _xp(database, "me") == EVERYTHING
    assert await _xp(database, "you") == 0


async def test_moments_grow_with_every_commit_also_when_the_clock_was_set_back(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _award(database, "me", POSSIBLE[:1])
    monkeypatch.setattr("app.progress.ledger.now", lambda: now() - timedelta(days=1))
    await _award(database, "me", POSSIBLE[1:2])

    entries = await _entries(database, "me")
    assert entries["cell", "c/a#2"][1] > entries["cell", "c/a#1"][1]


async def test_an_award_that_is_rolled_back_was_never_made(database: Database) -> None:
    async with database.session() as session:
        await _LEDGER.award(session, "me", POSSIBLE)
        await session.rollback()

    assert await _entries(database, "me") == {}


@pytest.mark.timeout(120)
async def test_fifty_writers_at_once_lose_nothing_and_double_nothing(database: Database) -> None:
    chance = random.Random(5)
    shares = [chance.sample(POSSIBLE, k=chance.randint(1, 4)) for _ in range(50)]
    shares[:14] = [[fact] for fact in POSSIBLE]

    awarded = await asyncio.gather(*(_award(database, "me", share) for share in shares))

    assert await _xp(database, "me") == EVERYTHING
    assert sum(fact.xp for one in awarded for fact in one.entries) == EVERYTHING
    names = [(fact.kind, fact.subject) for one in awarded for fact in one.entries]
    assert len(names) == len(set(names)) == len(await _entries(database, "me"))


@pytest.mark.timeout(120)
async def test_fifty_facts_of_two_processes_at_once_miss_nothing_that_they_make_together(database: Database) -> None:
    """Add each fact once: the later transaction sees what follows from both, or none does."""
    other = Database(str(database.url), wait_s=60.0)  # as the fixture: all queue at once
    facts = [*POSSIBLE, *(LearningEvent("cell", f"c/more#{number}", 10) for number in range(36))]
    random.Random(6).shuffle(facts)
    try:
        awarded = await asyncio.gather(
            *(_award((database, other)[number % 2], "me", [fact]) for number, fact in enumerate(facts))
        )
    finally:
        await other.close()

    assert await _xp(database, "me") == EVERYTHING + 360
    assert sum(fact.xp for one in awarded for fact in one.entries) == EVERYTHING + 360


@pytest.mark.timeout(120)
async def test_browsers_that_merge_at_once_while_others_still_write_lose_nothing(database: Database) -> None:
    """As at sign-in: the visitor's row is stored, then everything moves, in one transaction."""
    account = await store_account(database)
    browsers = [f"visitor {number}" for number in range(6)]
    chance = random.Random(7)

    async def sign_in(browser: str) -> None:
        await asyncio.sleep(chance.random() / 20)
        async with database.writing() as session:
            session.add(MergedVisitor(visitor_id=browser, account_id=account.id, merged_at=now()))
            await session.flush()
            await _LEDGER.merge(session, browser, account.learner_id)

    async def work(browser: str, fact: LearningEvent) -> None:
        await asyncio.sleep(chance.random() / 10)
        await _award(database, browser, [fact])

    writers = [work(browsers[number % 6], fact) for number, fact in enumerate(POSSIBLE * 3)]
    await asyncio.gather(*map(sign_in, browsers), *writers)

    assert await _xp(database, account.learner_id) == EVERYTHING
    async with database.session() as session:
        assert await session.scalar(select(func.count(LedgerEntry.learner_id.distinct()))) == 1


async def test_what_comes_too_late_for_a_visitor_is_the_accounts(database: Database) -> None:
    account = await store_account(database)
    async with database.writing() as session:
        session.add(MergedVisitor(visitor_id="gone", account_id=account.id, merged_at=now()))

    awarded = await _award(database, "gone", POSSIBLE[:1])

    assert awarded.learner_id == account.learner_id
    assert await _xp(database, account.learner_id) == 30


async def test_a_merge_keeps_the_earliest_moments_and_says_what_came_in(database: Database) -> None:
    await _award(database, "visitor", [LearningEvent("cell", "c/a#1", 10), LearningEvent("cell", "c/b#1", 10)])
    before = await _entries(database, "visitor")
    await _award(database, "account", [LearningEvent("cell", "c/a#1", 10), LearningEvent("read", "c/b")])

    brought = await _merge(database, "visitor", "account")
    again = await _merge(database, "visitor", "account")

    entries = await _entries(database, "account")
    assert brought == {"xp": 10 + UNJUDGED_XP, "cells": 1, "lessons": 1, "achievements": 0}
    assert set(again.values()) == {0}
    assert entries["cell", "c/a#1"][1] == before["cell", "c/a#1"][1]
    assert entries["lesson", "c/b"][1] > before["cell", "c/b#1"][1], "it was completed by the union"
    assert await _entries(database, "visitor") == {}


async def test_a_merge_with_oneself_changes_nothing(database: Database) -> None:
    await _award(database, "me", POSSIBLE)

    assert await _merge(database, "me", "me") == {}
    assert await _xp(database, "me") == EVERYTHING


async def test_a_merge_joins_how_far_lessons_are_and_keeps_the_latest_place(database: Database) -> None:
    later = _NIGHT + timedelta(days=1)
    async with database.writing() as session:
        await lesson_progress.record_visits(
            session, "a", [LessonVisit("c/a", _NIGHT, later, None, "new"), LessonVisit("c/b", _NIGHT, _NIGHT)]
        )
        await lesson_progress.record_visits(
            session, "b", [LessonVisit("c/a", later, _NIGHT + timedelta(hours=1), later, "old")]
        )
        session.add(LearnerTimeZone(learner_id="a", time_zone="Asia/Seoul", updated_at=later))
        session.add(LearnerTimeZone(learner_id="b", time_zone="Europe/Berlin", updated_at=_NIGHT))

    await _merge(database, "a", "b")

    async with database.session() as session:
        rows = {row.lesson: row for row in await session.scalars(select(LessonProgress))}
        zone = await session.scalar(select(LearnerTimeZone.time_zone))
    assert {row.learner_id for row in rows.values()} == {"b"}
    assert set(rows) == {"c/a", "c/b"}
    joined = rows["c/a"]
    assert (joined.started_at, joined.last_seen_at, joined.end_reached_at, joined.anchor) == (
        _NIGHT,
        later,
        later,
        "new",
    )
    assert zone == "Asia/Seoul"


async def test_a_lesson_opened_again_on_a_later_day_of_the_learners_own_was_revisited(database: Database) -> None:
    completed = [LearningEvent("cell", "c/b#1", 10), LearningEvent("read", "c/b")]
    async with database.writing() as session:
        learner = await lock_current_learner(session, "me")
        session.add(LearnerTimeZone(learner_id=learner, time_zone="Pacific/Kiritimati", updated_at=now()))
        await lesson_progress.record_visits(session, learner, [LessonVisit("c/b", _NIGHT, _NIGHT)])
        await _LEDGER.enter(session, learner, completed)
    assert ("revisit", "c/b") not in await _entries(database, "me")

    async with database.writing() as session:
        learner = await lock_current_learner(session, "me")
        await lesson_progress.record_visits(session, learner, [LessonVisit("c/b", _NIGHT, now() + timedelta(days=1))])
        await _LEDGER.enter(session, learner, [])

    assert ("revisit", "c/b") in await _entries(database, "me")


_LEARNERS = ("account", "one", "two", "three")
_STEP = st.one_of(
    st.tuples(st.sampled_from(_LEARNERS), st.lists(st.sampled_from(POSSIBLE), min_size=1, max_size=4)),
    st.sampled_from(_LEARNERS[1:]),
)


@example_count(10)
@given(steps=st.lists(_STEP, max_size=12))
async def test_any_interleaving_of_awards_and_merges_is_as_if_one_learner_had_done_it_all(
    database: Database, steps: list[tuple[str, list[LearningEvent]] | str]
) -> None:
    await _forget(database)
    done: list[LearningEvent] = []
    for step in steps:
        if isinstance(step, str):
            await _merge(database, step, "account")
        else:
            await _award(database, step[0], step[1])
            done += step[1]
    for browser in _LEARNERS[1:]:
        await _merge(database, browser, "account")
    await _award(database, "alone", done)

    merged, one = await _entries(database, "account"), await _entries(database, "alone")
    assert {name: xp for name, (xp, _) in merged.items()} == {name: xp for name, (xp, _) in one.items()}


async def _forget(db: Database) -> None:
    async with db.writing() as session:
        for entry in await session.scalars(select(LedgerEntry)):
            await session.delete(entry)
