"""``lockstep dev seed``: made-up learners and comments, the same for one seed, in every kind of database."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Table, func, select
from typer.testing import CliRunner, Result

from app.accounts.models import Account, Mailing
from app.cli.dev import app
from app.comments.listing import threads
from app.comments.models import Comment, Place
from app.comments.sight import Viewer
from app.db import Database
from app.lessons.catalog import Catalog
from app.progress.ledger import read_known
from app.progress.models import Entry, LessonProgress
from app.tables import TABLES
from tests.factories.course import LESSON, write_course

SMALL = ("seed", "--users", "40", "--comments", "300", "--lessons", "5")


@pytest.fixture
def url(empty_database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of an empty database of each kind, which the settings name."""
    monkeypatch.setenv("LOCKSTEP_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("LOCKSTEP_DATABASE_URL", empty_database_url)
    monkeypatch.setenv("LOCKSTEP_LESSONS_DIR", str(write_course(tmp_path / "lessons")))
    mask = os.umask(0o022)
    yield empty_database_url
    os.umask(mask)


def dev(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def rows(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """All that is in the database, but for moments: those are counted back from now."""

    async def work() -> dict[str, list[tuple[Any, ...]]]:
        db = Database(url)
        try:
            async with db.session() as session:
                return {table.name: [tuple(row) for row in await session.execute(_steady(table))] for table in TABLES}
        finally:
            await db.close()

    return asyncio.run(work())


def _steady(table: Table) -> Any:
    columns = [c for c in table.columns if not c.name.endswith("at") and c.name not in ("id", "thread_id")]
    return select(*columns).order_by(*columns) if table.name != "ledger" else select(func.count()).select_from(table)


def test_it_makes_as_much_as_was_asked_for_and_says_that_it_is_not_for_production(url: str) -> None:
    seeded = dev(*SMALL)

    assert seeded.exit_code == 0, seeded.output
    assert "40 learners" in seeded.stderr
    assert "300 comments about 5 lessons" in seeded.stderr
    assert "never for production" in seeded.stderr
    made = rows(url)
    assert (len(made["accounts"]), len(made["comments"])) == (40, 300)


def test_what_it_makes_hangs_together(url: str) -> None:
    assert dev(*SMALL).exit_code == 0

    async def look() -> None:
        db = Database(url)
        try:
            async with db.session() as session:
                counted = select(Comment.lesson, Comment.cell, func.count()).group_by(Comment.lesson, Comment.cell)
                there = {(lesson, cell): number for lesson, cell, number in await session.execute(counted)}
                said = {(place.lesson, place.cell): place.shown for place in await session.scalars(select(Place))}
                assert there == said

                reply = Comment.__table__.alias()
                replies = select(func.count()).where(reply.c.thread_id == Comment.id).scalar_subquery()
                of_root = select(Comment.replies, replies).where(Comment.thread_id.is_(None))
                found = (await session.execute(of_root)).all()
                assert all(written == real for written, real in found)
                assert any(real for _written, real in found)

                shown, _ = await threads(session, Viewer(None, False), LESSON, "")
                assert shown
                assert all(account.mailing == Mailing.never for account in await session.scalars(select(Account)))

                done = select(LessonProgress).where(LessonProgress.completed_at.is_not(None))
                progress = (await session.scalars(done)).all()
                assert progress
                for one in progress:
                    known = await read_known(session, one.learner_id)
                    assert one.lesson in known.by_kind["lesson"]
                    assert known.by_kind["day"]
        finally:
            await db.close()

    asyncio.run(look())


def test_the_same_seed_makes_the_same_and_another_one_something_else(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dev(*SMALL)
    first, found = rows(url), {}
    for name, number in (("same", "1"), ("other", "2")):
        again = f"sqlite+aiosqlite:///{tmp_path / f'{name}.db'}"
        monkeypatch.setenv("LOCKSTEP_DATABASE_URL", again)
        assert dev(*SMALL, "--seed", number).exit_code == 0
        found[name] = rows(again)

    for table in ("accounts", "comments", "comment_places", "lesson_progress"):
        assert sorted(map(repr, found["same"][table])) == sorted(map(repr, first[table])), table
        assert sorted(map(repr, found["other"][table])) != sorted(map(repr, first[table])), table


def test_a_database_with_accounts_is_left_alone_unless_that_is_asked_for(url: str) -> None:
    dev(*SMALL)
    before = rows(url)

    refused, again = dev(*SMALL), dev(*SMALL, "--force")

    assert (refused.exit_code, again.exit_code) == (1, 1)
    assert "has accounts already (40)" in refused.stderr
    assert "choose another with --seed" in again.stderr
    assert rows(url) == before

    assert dev(*SMALL, "--force", "--seed", "2").exit_code == 0
    after = rows(url)
    assert (len(after["accounts"]), len(after["comments"])) == (80, 600)
    assert sum(shown for *_, shown in after["comment_places"]) == 600


def test_the_made_up_lessons_are_lessons(url: str, tmp_path: Path) -> None:
    folder = tmp_path / "more"

    written, again = dev(*SMALL, "--lessons-to", str(folder)), dev(*SMALL, "--lessons-to", str(folder))

    assert written.exit_code == 0, written.output
    assert "4 made-up lessons" in written.stderr, "one of the five is there"
    assert again.exit_code == 2
    catalog = Catalog(folder)
    catalog.reload()
    assert catalog.problems == ()
    lessons = {lesson.key: tuple(cell.name for cell in lesson.cells) for lesson in catalog.every()}
    assert len(lessons) == 4

    async def unknown() -> list[str]:
        db = Database(url)
        try:
            async with db.session() as session:
                entries = await session.scalars(select(Entry.subject).where(Entry.kind == "cell"))
                known = {f"{lesson}#{cell}" for lesson, cells in lessons.items() for cell in cells}
                return [subject for subject in entries if subject not in known and not subject.startswith(LESSON)]
        finally:
            await db.close()

    assert asyncio.run(unknown()) == []


def test_a_database_that_is_not_there_is_said_in_a_sentence(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_DATABASE_URL", "postgresql+asyncpg://nobody@127.0.0.1:1/none")

    refused = dev(*SMALL)

    assert refused.exit_code == 1
    assert "The database cannot be used" in refused.stderr
