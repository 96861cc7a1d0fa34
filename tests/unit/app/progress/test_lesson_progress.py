"""Progress in lessons, in whatever order browsers report it, how often, and when they merge."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import delete, select

from app.db import Database, now
from app.progress import lesson_progress
from app.progress.events import LearningEvent
from app.progress.ledger import lock_current_learner
from app.progress.lesson_progress import LessonVisit
from app.progress.models import LedgerEntry, LessonProgress
from tests.factories.hypothesis_examples import example_count
from tests.factories.progress import small_ledger

_LEDGER = small_ledger()
_CELL = LearningEvent("cell", "c/b#1", 10)
_TODAY = now()
_DAYS = st.sampled_from((-3, -2, -1, 2, 3)).map(lambda days: _TODAY + timedelta(days=days))
"""Around the day of the test, so that pages are opened before and after their lesson is completed."""


@st.composite
def _visits(draw: st.DrawFn) -> LessonVisit:
    started, seen = sorted((draw(_DAYS), draw(_DAYS)))
    end = draw(st.one_of(st.none(), st.just(started)))
    return LessonVisit(draw(st.sampled_from(("c/b", "c/d"))), started, seen, end, draw(st.sampled_from(("", "x", "y"))))


_STEP = st.tuples(st.sampled_from(("one", "two", "account")), st.one_of(_visits(), st.just(_CELL), st.none()))
"""A browser tells of a visit, has run the cell, or (None) signs in."""


async def _tell(db: Database, learner: str, news: LessonVisit | LearningEvent) -> None:
    async with db.writing() as session:
        await lock_current_learner(session, learner)
        facts = (
            [news] if isinstance(news, LearningEvent) else await lesson_progress.record_visits(session, learner, [news])
        )
        await _LEDGER.enter(session, learner, facts)


async def _merge(db: Database, learner: str) -> None:
    async with db.writing() as session:
        await _LEDGER.merge(session, learner, "account")


async def _state(db: Database, learner: str) -> tuple[object, ...]:
    async with db.session() as session:
        rows = await session.scalars(select(LessonProgress).where(LessonProgress.learner_id == learner))
        entries = await session.scalars(select(LedgerEntry).where(LedgerEntry.learner_id == learner))
        return (
            {row.lesson: _known(row) for row in rows},
            {(entry.kind, entry.subject, entry.xp) for entry in entries},
        )


def _known(row: LessonProgress) -> tuple[datetime | bool | str | None, ...]:
    done = row.completed_at is not None, row.revisited_at is not None
    return row.started_at, row.end_reached_at, row.last_seen_at, row.anchor, *done


@example_count(10)
@given(steps=st.lists(_STEP, max_size=10), order=st.randoms(use_true_random=False))
async def test_any_order_any_repetition_and_any_merge_ends_up_the_same(
    database: Database, steps: list[tuple[str, LessonVisit | LearningEvent | None]], order: Random
) -> None:
    async with database.writing() as session:
        for table in (LedgerEntry, LessonProgress):
            await session.execute(delete(table))
    news = [said for _, said in steps if said is not None]
    for browser, said in steps:
        await (_merge(database, browser) if said is None else _tell(database, browser, said))
    for browser in ("one", "two"):
        await _merge(database, browser)

    again = news * 2
    order.shuffle(again)
    for said in again:
        await _tell(database, "alone", said)

    assert await _state(database, "account") == await _state(database, "alone")


async def test_a_lesson_goes_on_where_it_was_seen_last(database: Database) -> None:
    async with database.writing() as session:
        earlier = _TODAY - timedelta(hours=1)
        await lesson_progress.record_visits(session, "me", [LessonVisit("c/b", _TODAY, _TODAY, None, "later")])
        await lesson_progress.record_visits(session, "me", [LessonVisit("c/b", earlier, earlier, None, "earlier")])

    async with database.session() as session:
        row = (await session.scalars(select(LessonProgress))).one()
    assert (row.anchor, row.started_at, row.last_seen_at) == ("later", earlier, _TODAY)
