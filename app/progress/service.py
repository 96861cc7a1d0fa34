"""Progress, put together: one for each process, made by ``main`` as ``app.state.progress``.

Routes ask for ``TheProgress``; it holds ``ledger`` (award, merge) and ``summary`` (what pages show).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import Depends
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.requests import Request

from app.db import now
from app.i18n import DEFAULT
from app.lessons.catalog import Catalog
from app.lessons.errors import CourseUnknown, LessonNotAvailable, LessonUnknown
from app.lessons.model import Cell, Lesson, Tag
from app.progress import lessons, zones
from app.progress.facts import RunFacts, day, facts_of_run
from app.progress.ledger import Awarded, Ledger, alone
from app.progress.lessons import Visit
from app.progress.marks import Marks
from app.progress.rulebook import RuleBook
from app.progress.summary import Summary
from app.progress.terms import CourseTerms, Terms

_EARLIEST = datetime(2020, 1, 1, tzinfo=UTC)
"""No browser has read a page here before."""


class Progress:
    """What features need of progress."""

    def __init__(self, catalog: Catalog, rulebook: RuleBook) -> None:
        self._catalog = catalog
        self._rulebook = rulebook
        self._terms: tuple[object, Terms] | None = None
        self.ledger = Ledger(self.terms)
        self.summary = Summary(catalog, self.terms)

    def terms(self) -> Terms:
        """What there is to reach, as the lessons and the rules are now."""
        edition = (self._catalog.digest, self._rulebook.rules)
        if self._terms is None or self._terms[0] != edition:
            self._terms = edition, terms_of(self._catalog, self._rulebook)
        return self._terms[1]

    def counts(self, lesson: str) -> bool:
        """Whether anything in a lesson earns XP: not while it is a draft."""
        return lesson not in self._catalog.hidden

    def cell(self, lesson: str, name: str) -> Cell | None:
        """A cell by ``course/slug`` and name, if the lesson has it now."""
        course, _, slug = lesson.partition("/")
        try:
            return self._catalog.lesson(course, slug, DEFAULT).cell(name)
        except (CourseUnknown, LessonUnknown, LessonNotAvailable):
            return None

    async def run_ended(self, session: AsyncSession, learner_id: str, run: RunFacts) -> Awarded:
        """Award what a run proves. The caller commits, and then wakes ``topic`` of the learner."""
        learner_id = await alone(session, learner_id)
        here = zones.local(run.ended, await zones.zone_of(session, learner_id))
        if run.lesson in self.terms().minutes:
            visit = Visit(run.lesson, run.ended, run.ended, place=f"cell-{run.cell}")
            await lessons.note(session, learner_id, [visit])
        return await self.ledger.enter(session, learner_id, facts_of_run(run, here))

    async def take_marks(self, session: AsyncSession, learner_id: str, marks: Marks) -> tuple[int, Awarded]:
        """Write down what a browser says was read: how many lessons of it there are, and what followed."""
        learner_id = await alone(session, learner_id)
        await zones.say(session, learner_id, marks.time_zone)
        there = self.terms().minutes
        visits = [
            Visit(
                mark.lesson,
                _sane(min(mark.opened_at, mark.seen_at)),
                _sane(mark.seen_at),
                None if mark.end_reached_at is None else _sane(mark.end_reached_at),
                mark.place,
            )
            for mark in marks.marks
            if mark.lesson in there
        ]
        facts = await lessons.note(session, learner_id, visits)
        if visits:
            facts.append(day(zones.local(now(), await zones.zone_of(session, learner_id))))
        return len(visits), await self.ledger.enter(session, learner_id, facts)


def topic(learner_id: str) -> str:
    """What is woken on the bus after something was awarded."""
    return f"progress {learner_id}"


def terms_of(catalog: Catalog, rulebook: RuleBook) -> Terms:
    """Gather what there is to reach."""
    courses, cells, minutes = {}, {}, {}
    for course in catalog.courses(DEFAULT):
        outline = catalog.outline(course.slug, DEFAULT)
        modules = {
            f"{course.slug}/{module.slug}": tuple(f"{course.slug}/{entry.slug}" for entry in module.lessons)
            for module in outline.modules
        }
        courses[course.slug] = CourseTerms(course.slug, modules)
        for entry in outline.lessons:
            minutes[f"{course.slug}/{entry.slug}"] = entry.lesson.minutes if entry.lesson else 0
            if entry.lesson is not None:
                cells[entry.lesson.key] = frozenset(needed_cells(entry.lesson))
    return Terms(courses, cells, minutes, rulebook.rules)


def needed_cells(lesson: Lesson) -> list[str]:
    """The cells of a lesson's page that are there to be run, as the ledger names them."""
    idle = {Tag.skip_execution, Tag.remove_cell}
    return [f"{lesson.key}#{cell.name}" for cell in lesson.cells if not cell.tags & idle]


def _sane(milliseconds: int) -> datetime:
    """A moment that a browser names, as far as its clock can be believed."""
    present = now()
    if milliseconds >= present.timestamp() * 1000:
        return present
    return max(_EARLIEST, datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=milliseconds))


async def _progress(request: Request) -> Progress:
    progress: Progress = request.app.state.progress
    return progress


TheProgress = Annotated[Progress, Depends(_progress)]
