"""The lessons of this repository, read once per process: that takes a second."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from app.lessons.catalog import Catalog
from app.lessons.model import Lesson

LESSONS = Path(__file__).parents[2] / "lessons"
VARIABLE = "LOCKSTEP_TEST_LESSONS"
EACH_MACHINE = "each-machine"


@cache
def shipped_catalog() -> Catalog:
    """The catalog of the lessons. Do not reload or change it: all tests of this process have it."""
    catalog = Catalog(LESSONS, quiet=True)
    catalog.reload()
    return catalog


def chosen_lessons() -> list[Lesson]:
    """The lessons whose cells the long tests run, in English and in the order of the course, with drafts.

    `make test-long` has the variable LESSONS for them. Among their slugs, ``each-machine`` stands for the first lesson
    on each kind of machine. Without names, they are all chosen.

    Raises:
        ValueError: A name is no lesson's.
    """
    lessons = [lesson for lesson in shipped_catalog().with_drafts.every() if lesson.language == "en"]
    names = set(os.environ.get(VARIABLE, "").split())
    if not names:
        return lessons
    if EACH_MACHINE in names:
        first: dict[str, str] = {}
        for lesson in lessons:
            first.setdefault(lesson.topology.partition(":")[0], lesson.slug)
        names = names - {EACH_MACHINE} | set(first.values())
    if unknown := names - {lesson.slug for lesson in lessons}:
        raise ValueError(f"No lesson has the name {', '.join(sorted(unknown))}; {VARIABLE} names it.")
    return [lesson for lesson in lessons if lesson.slug in names]
