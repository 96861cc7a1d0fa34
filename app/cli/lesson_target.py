"""What a command is about: a lesson or a course, by name or by path."""

from __future__ import annotations

import re
from pathlib import Path

from app.cli.console import USAGE_ERROR, fail
from app.i18n import LANGUAGE_CODES
from app.lessons.course_file import parse_course
from app.lessons.front_matter import SLUG_PATTERN

_LESSON_FILE = re.compile(rf"lesson(?:\.(?:{'|'.join(LANGUAGE_CODES[1:])}))?\.md")


def belongs_to(path: Path, root: Path, target: str) -> bool:
    """Whether a file is part of a lesson or course, given by its slug, as ``course/slug``, or as a path."""
    parts = path.relative_to(root).parts
    names = (parts[0], parts[1], f"{parts[0]}/{parts[1]}") if len(parts) > 2 else parts[:1]
    if target in names:
        return True
    place = Path(target).resolve()
    lesson = root.resolve() / Path(*parts[:2])
    return place.exists() and (lesson.is_relative_to(place) or (len(parts) > 2 and place.is_relative_to(lesson)))


def find_lesson_file(root: Path, target: str) -> Path:
    """The file of one lesson, given by its path or its folder's, or by its name in ``root``; exits if there is none."""
    named = Path(target).absolute()
    file = named / "lesson.md" if named.is_dir() else named
    if not file.is_file():
        file = _named_lesson(root, target)
    if not _LESSON_FILE.fullmatch(file.name):
        fail(
            f"{target} is not a lesson: its file is called lesson.md. To turn it into one: lockstep lesson import",
            USAGE_ERROR,
        )
    course = file.parents[1] / "course.toml"
    if not course.is_file():
        fail(f"{target} is in no course: there is no {course}. To make one: lockstep lesson new", USAGE_ERROR)
    listed, _ = parse_course(course.read_text(encoding="utf-8", errors="replace"), course.parent.name)
    if listed is not None and file.parent.name not in listed.lessons:
        fail(f'{course} does not list this lesson. Add "{file.parent.name}" to the lessons of a module.', USAGE_ERROR)
    return file


def _named_lesson(root: Path, target: str) -> Path:
    *course, slug = target.split("/")
    if len(course) > 1 or not all(map(SLUG_PATTERN.fullmatch, (*course, slug))):
        fail(f"There is no file {target}.", USAGE_ERROR)
    found = sorted(root.glob(f"{course[0] if course else '*'}/{slug}/lesson.md"))
    if not found:
        fail(f"There is no lesson '{target}' in {root}. 'lockstep lesson list' shows them all.", USAGE_ERROR)
    if len(found) > 1:
        keys = " or ".join(f"{file.parents[1].name}/{slug}" for file in found)
        fail(f"There are several lessons '{slug}'. Write {keys}.", USAGE_ERROR)
    return found[0]
