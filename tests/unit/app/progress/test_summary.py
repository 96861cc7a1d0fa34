"""The summary of progress on pages: correct, with few queries, and without secrets."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncSession

from app.db import Database
from app.i18n import use_language
from app.lessons.catalog import Catalog
from app.lessons.errors import CourseNotFound
from app.progress import lesson_progress
from app.progress.achievement_catalog import AchievementCatalog
from app.progress.events import LearningEvent
from app.progress.lesson_progress import LessonVisit
from app.progress.models import LearnerTimeZone
from app.progress.service import ProgressService
from app.progress.summary import LessonStage, ProgressSummary
from tests.factories.course import LESSON, write_course

_RULES = """
[[achievements]]
id = "first-run"
xp = 90
title.en = "First"
title.zh = "第一"
description = "The first."
needs = { kind = "cell" }
[[achievements]]
id = "long-night"
hidden = true
title = "Owl"
description = "A night."
needs = { kind = "night" }
"""
_CELLS = [LearningEvent("cell", f"{LESSON}#hello", 10), LearningEvent("cell", f"{LESSON}#alone", 10)]

Question = Callable[[ProgressSummary, AsyncSession, str | None], Awaitable[Any]]
_QUESTIONS: dict[str, Question] = {
    "header": lambda summary, session, learner: summary.header(session, learner, "small"),
    "outline": lambda summary, session, learner: summary.outline(session, learner, "small"),
    "achievements": lambda summary, session, learner: summary.achievements(session, learner),
    "news": lambda summary, session, learner: summary.news(session, learner, "0"),
}


@pytest.fixture
def progress(tmp_path: Path) -> ProgressService:
    root = write_course(tmp_path / "lessons")
    (root / "achievements.toml").write_text(_RULES)
    catalog = Catalog(root, quiet=True)
    rulebook = AchievementCatalog(catalog)
    catalog.after_reload(rulebook.reload)
    catalog.reload()
    return ProgressService(catalog, rulebook)


async def _do(db: Database, progress: ProgressService, *facts: LearningEvent) -> None:
    async with db.writing() as session:
        await progress.ledger.award(session, "me", facts)


@pytest.mark.parametrize("question", sorted(_QUESTIONS))
async def test_nothing_takes_more_than_two_queries_and_a_stranger_costs_none(
    database: Database, progress: ProgressService, question: str
) -> None:
    await _do(database, progress, *_CELLS, LearningEvent("read", LESSON), LearningEvent("day", "2026-11-21"))
    asked: list[str] = []

    def note(*arguments: Any) -> None:
        asked.append(arguments[2])

    event.listen(database.engine.sync_engine, "before_cursor_execute", note)
    async with database.session() as session:
        await _QUESTIONS[question](progress.summary, session, None)
        assert asked == []
        await _QUESTIONS[question](progress.summary, session, "me")
    assert 1 <= len(asked) <= 2


async def test_a_lesson_goes_through_its_stages(database: Database, progress: ProgressService) -> None:
    async def state() -> tuple[LessonStage, int, bool]:
        async with database.session() as session:
            [lesson] = await progress.summary.outline(session, "me", "small")
        assert (lesson.slug, lesson.cells) == ("first", 2)
        return lesson.stage, lesson.cells_done, lesson.end_reached

    assert await state() == (LessonStage.new, 0, False)
    await _do(database, progress, _CELLS[0])
    assert await state() == (LessonStage.started, 1, False)
    await _do(database, progress, LearningEvent("read", LESSON))
    assert await state() == (LessonStage.started, 1, True)
    await _do(database, progress, _CELLS[1])
    assert await state() == (LessonStage.completed, 2, True)
    await _do(database, progress, LearningEvent("revisit", LESSON))
    assert await state() == (LessonStage.revisited, 2, True)


async def test_the_header_counts_lessons_and_goes_by_the_learners_clock(
    database: Database, progress: ProgressService, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = [LearningEvent("day", f"2026-11-{day}") for day in (16, 17, 22)]
    await _do(database, progress, *_CELLS, LearningEvent("read", LESSON), *days)
    sunday = datetime(2026, 11, 22, 20, tzinfo=UTC)
    sunday_evening = LessonVisit(LESSON, started_at=sunday, last_seen_at=sunday, anchor="cell-alone")
    async with database.writing() as session:
        await lesson_progress.record_visits(session, "me", [sunday_evening])
        session.add(LearnerTimeZone(learner_id="me", time_zone="UTC", updated_at=sunday_evening.last_seen_at))
    monkeypatch.setattr("app.progress.summary.now", lambda: sunday_evening.last_seen_at)

    async with database.session() as session:
        header = await progress.summary.header(session, "me", "small")
        zone = await session.get_one(LearnerTimeZone, "me")
        zone.time_zone = "Asia/Seoul"
        await session.commit()
        in_seoul = await progress.summary.header(session, "me")

    assert (header.lessons_done, header.lessons, header.percent) == (1, 1, 100)
    assert (header.streak.weeks, header.streak.days) == (1, 3)
    assert (in_seoul.streak.weeks, in_seoul.streak.days) == (1, 0), "there it is Monday"
    assert header.resume is None, "it is done"


@pytest.mark.parametrize(
    ("visited", "done", "leads_to"),
    [
        ("", "", None),
        ("b", "", ("b", "here")),
        ("a b", "", ("b", "here")),
        ("a b", "b", ("a", "here")),  # the last one that is not done
        ("b", "b", ("c", "")),  # none is open: the next one
        ("d", "d", ("a", "")),  # none comes after it: the first that was left out
        ("b d", "b d", ("a", "")),
        ("d b", "d b", ("c", "")),
        ("a b c d", "a b c d", None),
    ],
)
async def test_one_goes_on_where_something_is_left_to_do(
    database: Database, tmp_path: Path, visited: str, done: str, leads_to: tuple[str, str] | None
) -> None:
    root = write_course(tmp_path / "four")
    for slug in "abcd":
        shutil.copytree(root / "small" / "first", root / "small" / slug)
    course = root / "small" / "course.toml"
    course.write_text(course.read_text().replace('["first"]', '["a", "b", "c", "d"]'))
    catalog = Catalog(root, quiet=True)
    progress = ProgressService(catalog, AchievementCatalog(catalog))
    catalog.reload()
    async with database.writing() as session:
        for number, slug in enumerate(visited.split()):
            moment = datetime(2026, 11, 22, number, tzinfo=UTC)
            await lesson_progress.record_visits(
                session, "me", [LessonVisit(f"small/{slug}", moment, moment, anchor="here")]
            )
    await _do(database, progress, *(LearningEvent("lesson", f"small/{slug}") for slug in done.split()))

    async with database.session() as session:
        header = await progress.summary.header(session, "me", "small")

    found = (header.resume.slug, header.resume.anchor) if header.resume else None
    assert found == leads_to


async def test_a_secret_is_kept_until_it_is_earned(database: Database, progress: ProgressService) -> None:
    async with database.session() as session:
        _, secret = await progress.summary.achievements(session, "me")
    assert (secret.hidden, secret.badge, secret.title, secret.description, secret.earned_at) == (True, "", "", "", None)

    await _do(database, progress, LearningEvent("night", "2026-11-21"))

    async with database.session() as session:
        _, told = await progress.summary.achievements(session, "me")
    assert (told.badge, told.title, told.towards.done) == ("long-night", "Owl", True)
    assert told.earned_at is not None


async def test_news_tell_of_a_new_level_in_the_language_in_use(database: Database, progress: ProgressService) -> None:
    async with database.session() as session:
        before = await progress.summary.news(session, "me", "")
    await _do(database, progress, *_CELLS)

    with use_language("zh"):
        async with database.session() as session:
            news = await progress.summary.news(session, "me", before.cursor)
            later = await progress.summary.news(session, "me", news.cursor)
    assert {(item.kind, item.title) for item in news.items} == {
        ("achievement", "第一"),
        ("cell", "Say hello"),
        ("cell", "On one CPU"),
    }
    assert (news.xp, news.level_before, news.level.number) == (110, 0, 1)
    assert (later.items, later.cursor, later.level_before) == ((), news.cursor, 1)


async def test_an_unknown_course_is_not_found(database: Database, progress: ProgressService) -> None:
    async with database.session() as session:
        with pytest.raises(CourseNotFound):
            await progress.summary.outline(session, "me", "none")
        with pytest.raises(CourseNotFound):
            await progress.summary.header(session, None, "none")
