"""Finds the lesson and the cell that a request names.

Most lessons are in the catalog. A feature can have pages of its own whose cells run like those of a lesson: it adds a
source of lessons under a word that no course can be called, such as ``~playground``, and everything that runs cells
works there unchanged: sessions, streams, limits and drafts know a lesson only by its key.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends

from app import i18n
from app.db import Database
from app.lessons.catalog import CatalogView
from app.lessons.dependencies import CatalogDep
from app.lessons.model import Cell, Lesson
from app.runs.errors import CellNotFound
from app.runs.scratch_cells import as_cell, find_scratch_cell
from app.web.dependencies import AppKey, DatabaseDep

LessonSource = Callable[[Database, str, str], Awaitable[Lesson]]
"""Returns the lesson with this slug in a language. Raises NotFound."""
LESSON_SOURCES = AppKey[Mapping[str, LessonSource]]("lesson_sources")
"""The sources of all features, by the first part of the keys of their lessons."""
LessonSourcesDep = Annotated[Mapping[str, LessonSource], Depends(LESSON_SOURCES.from_request)]


@dataclass(frozen=True, slots=True)
class LessonLookup:
    """All lessons that the viewer may see, in the current language."""

    catalog: CatalogView
    sources: Mapping[str, LessonSource]
    db: Database

    async def lesson(self, key: str) -> Lesson:
        """The lesson ``course/slug``. Raises LessonNotFound, CourseNotFound, or another NotFound."""
        course, _, slug = key.partition("/")
        if (source := self.sources.get(course)) is not None:
            return await source(self.db, slug, i18n.current_language())
        return self.catalog.lesson(course, slug, i18n.current_language())

    async def cell(self, lesson: Lesson, learner: str | None, name: str) -> Cell:
        """A cell of the lesson, or one that the learner has added to it. Raises CellNotFound."""
        if (cell := lesson.cell(name)) is not None:
            return cell
        async with self.db.session() as session:
            scratch = await find_scratch_cell(session, learner, lesson.key, name)
        if scratch is None or scratch.kind != "code":
            raise CellNotFound(cell=name[:100])
        return as_cell(scratch, lesson)


async def _lookup(catalog: CatalogDep, sources: LessonSourcesDep, db: DatabaseDep) -> LessonLookup:
    return LessonLookup(catalog, sources, db)


LessonLookupDep = Annotated[LessonLookup, Depends(_lookup)]


async def _requested_lesson(lookup: LessonLookupDep, lesson: str) -> Lesson:
    return await lookup.lesson(lesson)


RequestedLesson = Annotated[Lesson, Depends(_requested_lesson)]
"""The lesson named by ``?lesson=course/slug``."""
