"""Generated learners and comments: as many as requested, consistent, the same for one seed, in each database."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from seed import NotEmpty, fill, plan_for, write_lessons
from seed_data import Plan
from sqlalchemy import Table, func, select

from app.accounts.models import Account, EmailFrequency
from app.comments.models import Comment, CommentCounter
from app.comments.permissions import Viewer
from app.comments.queries import list_threads
from app.db import Database
from app.lessons.catalog import Catalog
from app.progress.ledger import load_learner_events
from app.progress.models import LedgerEntry, LessonProgress
from app.tables import TABLES
from tests.factories.course import LESSON, write_course


@pytest.fixture
def lessons(tmp_path: Path) -> Path:
    """A folder with one course of one lesson."""
    return write_course(tmp_path / "lessons")


def small(lessons: Path, seed: int = 1) -> Plan:
    return plan_for(lessons, users=40, comments=300, lessons=5, seed=seed)


async def rows(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """Everything in the database except times, which are relative to now."""
    db = Database(url)
    try:
        async with db.session() as session:
            return {table.name: [tuple(row) for row in await session.execute(_steady(table))] for table in TABLES}
    finally:
        await db.close()


def _steady(table: Table) -> Any:
    columns = [c for c in table.columns if not c.name.endswith("at") and c.name not in ("id", "thread_id")]
    return select(*columns).order_by(*columns) if table.name != "ledger" else select(func.count()).select_from(table)


async def test_it_makes_as_much_as_was_asked_for_and_it_is_consistent(empty_database_url: str, lessons: Path) -> None:
    made = await fill(empty_database_url, small(lessons))

    assert (made[Account], made[Comment]) == (40, 300)
    db = Database(empty_database_url)
    try:
        async with db.session() as session:
            counted = select(Comment.lesson, Comment.cell, func.count()).group_by(Comment.lesson, Comment.cell)
            there = {(lesson, cell): number for lesson, cell, number in await session.execute(counted)}
            assert there == {
                (one.lesson, one.cell): one.comment_count for one in await session.scalars(select(CommentCounter))
            }
            assert len({lesson for lesson, _cell in there}) == 5

            reply = Comment.__table__.alias()
            replies = select(func.count()).where(reply.c.thread_id == Comment.id).scalar_subquery()
            of_root = select(Comment.reply_count, replies).where(Comment.thread_id.is_(None))
            found = (await session.execute(of_root)).all()
            assert all(written == real for written, real in found)
            assert any(real for _written, real in found)

            shown, _ = await list_threads(session, Viewer(None, False), LESSON, "")
            assert shown
            assert all(
                account.email_frequency == EmailFrequency.never for account in await session.scalars(select(Account))
            )

            done = select(LessonProgress).where(LessonProgress.completed_at.is_not(None))
            progress = (await session.scalars(done)).all()
            assert progress
            for one in progress:
                known = await load_learner_events(session, one.learner_id)
                assert one.lesson in known.by_kind["lesson"]
                assert known.by_kind["day"]
    finally:
        await db.close()


async def test_the_same_seed_makes_the_same_and_another_one_something_else(tmp_path: Path, lessons: Path) -> None:
    found = {}
    for name, seed in (("first", 1), ("same", 1), ("other", 2)):
        url = f"sqlite+aiosqlite:///{tmp_path / f'{name}.db'}"
        await fill(url, small(lessons, seed))
        found[name] = await rows(url)

    for table in ("accounts", "comments", "comment_counters", "lesson_progress"):
        first, same, other = (sorted(map(repr, found[name][table])) for name in ("first", "same", "other"))
        assert same == first, table
        assert other != first, table


async def test_a_database_with_accounts_is_left_alone(empty_database_url: str, lessons: Path) -> None:
    await fill(empty_database_url, small(lessons))
    before = await rows(empty_database_url)

    with pytest.raises(NotEmpty):
        await fill(empty_database_url, small(lessons, seed=2))

    assert await rows(empty_database_url) == before


async def test_the_made_up_lessons_are_lessons(tmp_path: Path, lessons: Path, empty_database_url: str) -> None:
    plan, folder = small(lessons), tmp_path / "more"

    write_lessons(folder, plan)

    catalog = Catalog(folder)
    catalog.reload()
    assert catalog.problems == ()
    written = {lesson.key: tuple(cell.name for cell in lesson.cells) for lesson in catalog.every()}
    assert len(written) == 4, "one of the five is there"
    await fill(empty_database_url, plan)
    db = Database(empty_database_url)
    try:
        async with db.session() as session:
            entries = await session.scalars(select(LedgerEntry.subject).where(LedgerEntry.kind == "cell"))
            known = {f"{lesson}#{cell}" for lesson, cells in written.items() for cell in cells}
            assert [subject for subject in entries if subject not in known and not subject.startswith(LESSON)] == []
    finally:
        await db.close()
