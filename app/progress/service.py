"""The service of progress, one per process, created by ``feature.py``.

Routes depend on ``ProgressServiceDep``, which holds ``ledger`` (award, merge) and ``summary`` (what pages show).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import Depends
from sqlalchemy.ext.asyncio import AsyncSession

from app.db import now
from app.i18n import DEFAULT_LANGUAGE
from app.lessons.catalog import Catalog
from app.lessons.model import Cell, CellTag, Lesson
from app.progress import lesson_progress, timezones
from app.progress.achievement_catalog import AchievementCatalog
from app.progress.events import CompletedRun, LearningEvent, active_day, events_of_run
from app.progress.ledger import AwardResult, Ledger, lock_current_learner
from app.progress.lesson_progress import LessonVisit
from app.progress.reading_progress import ReadingReport
from app.progress.requirements import CourseRequirements, LessonTask, Requirements
from app.progress.summary import ProgressSummary
from app.web.dependencies import AppKey

_EARLIEST_READING = datetime(2020, 1, 1, tzinfo=UTC)
"""Earlier times cannot be right: this site did not exist."""


class ProgressService:
    """What other features use of progress."""

    def __init__(self, catalog: Catalog, rulebook: AchievementCatalog) -> None:
        self._catalog = catalog
        self._rulebook = rulebook
        self._terms: tuple[object, Requirements] | None = None
        self._edition = 0
        self.ledger = Ledger(self.terms)
        self.summary = ProgressSummary(catalog, self.terms)

    def terms(self) -> Requirements:
        """The requirements of the current lessons and achievements."""
        edition = (self._catalog.digest, self._rulebook.rules)
        if self._terms is None or self._terms[0] != edition:
            self._terms = edition, collect_requirements(self._catalog, self._rulebook)
            self._edition += 1
        return self._terms[1]

    @property
    def edition(self) -> int:
        """Changes, in this process, with the lessons and achievements."""
        self.terms()
        return self._edition

    def counts(self, lesson: str) -> bool:
        """Whether a lesson earns XP; drafts do not."""
        return lesson not in self._catalog.hidden

    def cell(self, lesson: str, name: str) -> Cell | None:
        """The cell of the lesson ``course/slug`` with this name, if it exists now."""
        found = self._catalog.find_lesson(lesson, DEFAULT_LANGUAGE)
        return found.cell(name) if found is not None else None

    async def run_ended(self, session: AsyncSession, learner_id: str, run: CompletedRun) -> AwardResult:
        """Award what a run proves. The caller commits."""
        learner_id = await lock_current_learner(session, learner_id)
        zone = await timezones.learner_timezone(session, learner_id)
        if run.lesson in self.terms().minutes:
            visit = LessonVisit(run.lesson, run.ended, run.ended, anchor=f"cell-{run.cell}")
            # A run opens no lesson: the home page has a cell of one, too. The lesson's page reports that it is open.
            await lesson_progress.record_visits(session, learner_id, [visit], only_opened=True)
        is_local = zone.key != timezones.DEFAULT_TIMEZONE
        facts = events_of_run(run, run.ended.astimezone(zone), is_local=is_local)
        return await self.ledger.enter(session, learner_id, facts)

    async def task_done(
        self, session: AsyncSession, learner_id: str, lesson: str, anchor: str, facts: Iterable[LearningEvent]
    ) -> AwardResult:
        """Award what a learner has just done in a lesson, at an anchor of its page. The caller commits."""
        learner_id = await lock_current_learner(session, learner_id)
        moment = now()
        here = moment.astimezone(await timezones.learner_timezone(session, learner_id))
        if lesson in self.terms().minutes:
            visit = LessonVisit(lesson, moment, moment, anchor=anchor)
            await lesson_progress.record_visits(session, learner_id, [visit])
        return await self.ledger.enter(session, learner_id, [*facts, active_day(here)])

    async def record_reading(self, session: AsyncSession, learner_id: str, report: ReadingReport) -> int:
        """Store reading progress and award what follows. Returns the number of lessons stored."""
        learner_id = await lock_current_learner(session, learner_id)
        await timezones.record_timezone(session, learner_id, report.time_zone)
        there = self.terms().minutes
        visits = [
            LessonVisit(
                reading.lesson,
                _plausible_time(min(reading.opened_at, reading.last_seen_at)),
                _plausible_time(reading.last_seen_at),
                None if reading.end_reached_at is None else _plausible_time(reading.end_reached_at),
                reading.anchor,
            )
            for reading in report.lessons
            if reading.lesson in there
        ]
        facts = await lesson_progress.record_visits(session, learner_id, visits)
        if visits:
            facts.append(active_day(now().astimezone(await timezones.learner_timezone(session, learner_id))))
        await self.ledger.enter(session, learner_id, facts)
        return len(visits)


def collect_requirements(catalog: Catalog, rulebook: AchievementCatalog) -> Requirements:
    """Collect the requirements from the lessons and achievements."""
    courses, cells, minutes, tasks = {}, {}, {}, {}
    for course in catalog.courses(DEFAULT_LANGUAGE):
        outline = catalog.outline(course.slug, DEFAULT_LANGUAGE)
        modules = {
            f"{course.slug}/{module.slug}": tuple(f"{course.slug}/{entry.slug}" for entry in module.lessons)
            for module in outline.modules
        }
        courses[course.slug] = CourseRequirements(course.slug, modules)
        for entry in outline.lessons:
            minutes[f"{course.slug}/{entry.slug}"] = entry.lesson.minutes if entry.lesson else 0
            if entry.lesson is not None:
                cells[entry.lesson.key] = frozenset(required_cells(entry.lesson))
                if found := frozenset(lesson_tasks(entry.lesson)):
                    tasks[entry.lesson.key] = found
    return Requirements(courses, cells, minutes, rulebook.rules, tasks)


def lesson_tasks(lesson: Lesson) -> list[LessonTask]:
    """The tasks that complete a lesson, in no particular order: those outside optional sections."""
    names = {
        "exercise": [cell.name for cell in lesson.exercises],
        "prediction": [prediction.name for prediction in lesson.predictions],
        "quiz": [quiz.name for quiz in lesson.quizzes],
    }
    return [
        LessonTask(kind, f"{lesson.key}#{name}")
        for kind, several in names.items()
        for name in several
        if name not in lesson.optional
    ]


def required_cells(lesson: Lesson) -> list[str]:
    """The cells of a lesson that a learner is meant to run, as the ledger names them."""
    idle = {CellTag.skip_execution, CellTag.remove_cell}
    needed = [cell for cell in lesson.cells if not cell.tags & idle and cell.name not in lesson.optional]
    return [f"{lesson.key}#{cell.name}" for cell in needed]


def _plausible_time(milliseconds: int) -> datetime:
    """A browser's timestamp, limited to the range that can be true."""
    present = now()
    if milliseconds >= present.timestamp() * 1000:
        return present
    return max(_EARLIEST_READING, datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=milliseconds))


PROGRESS = AppKey[ProgressService]("progress")
ProgressServiceDep = Annotated[ProgressService, Depends(PROGRESS.from_request)]
