"""Former names: what a lesson, a cell or a question was called before, written as ``was``. Pure.

Learners' work is stored under names. When an author renames something and writes the former name beside the new one,
that work follows (``app.lessons.renaming``), and the former address of a lesson leads to the new one. A cell or a
question that has moved here from another lesson of the course has a former name with that lesson, ``lesson#name``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from app.lessons.directives import LessonError
from app.lessons.front_matter import MAX_SLUG_LENGTH, SLUG_PATTERN, InvalidValue
from app.lessons.model import Cell, Lesson, Prediction, Quiz
from app.lessons.yaml_with_lines import YamlValue

MAX_FORMER_NAMES = 20


@dataclass(frozen=True, slots=True, order=True)
class NamedItem:
    """A cell or a question as written: its name, its former names, and its line."""

    name: str
    was: tuple[str, ...]
    line: int


@dataclass(frozen=True, slots=True, order=True)
class Rename:
    """A name that has changed: of a lesson, or of a cell or question (``name``), which may be in another lesson now."""

    former_lesson: str
    """``course/slug``. For a cell or a question, the lesson in which it had its former name."""
    lesson: str
    former_name: str = ""
    name: str = ""

    def __str__(self) -> str:
        before, after = (f"#{name}" if name else "" for name in (self.former_name, self.name))
        return f"{self.former_lesson}{before} → {self.lesson}{after}"


def parse_former_names(value: YamlValue) -> tuple[str, ...]:
    """Parse the option ``was`` of a cell or a question: a name or a list of names.

    Raises:
        InvalidValue: one of them cannot be a name.
    """
    names = value if isinstance(value, list) else [value]
    if not 1 <= len(names) <= MAX_FORMER_NAMES:
        raise InvalidValue(f"must be a former name or a list of 1 to {MAX_FORMER_NAMES}")
    for name in names:
        parts = str(name).split("#")
        if len(parts) > 2 or not all(SLUG_PATTERN.fullmatch(part) and len(part) <= MAX_SLUG_LENGTH for part in parts):
            raise InvalidValue(
                f"has {str(name)[:60]!r}, which cannot be a name; use lowercase letters, digits, and hyphens"
            )
    return tuple(str(name) for name in names)


def former_name_errors(items: Iterable[NamedItem]) -> Iterator[LessonError]:
    """Yield errors for former names that lead to two things: a name is either former or current, and of one thing."""
    items = list(items)
    current = {item.name: item.line for item in items}
    seen: dict[str, int] = {}
    for item in items:
        for name in item.was:
            if name in current:
                text = f"'was' has '{name}', which is a name on line {current[name]}; a former name cannot be in use"
                yield LessonError(item.line, text)
            elif name in seen:
                text = f"'was' has '{name}', as line {seen[name]} has; work under that name can go to one place only"
                yield LessonError(item.line, text)
            seen.setdefault(name, item.line)


def former_place(lesson: str, former: str) -> tuple[str, str]:
    """The key of the lesson, and the name in it, of what is now in ``lesson`` and has this former name."""
    slug, _, name = former.rpartition("#")
    return (f"{lesson.partition('/')[0]}/{slug}" if slug else lesson), name


def former_lessons(course: str, was: Mapping[str, Iterable[str]]) -> Mapping[str, str]:
    """The present key of each former one. A slug in use is not a former one. ``was`` has the lessons of the course."""
    return {
        f"{course}/{former}": f"{course}/{slug}" for slug, names in was.items() for former in names if former not in was
    }


def renames_of(lessons: Iterable[Lesson]) -> Iterator[Rename]:
    """Yield what was renamed: what has moved between lessons, then lessons, then their cells.

    The lesson in a former name has the slug that it had then, and it may have been renamed after a cell of it. A name
    that is in use is not a former one.
    """
    lessons = list(lessons)
    in_use = {(lesson.key, item.name) for lesson in lessons for item in _items(lesson)}
    cells = [
        (before, (lesson.key, item.name))
        for lesson in lessons
        for item in _items(lesson)
        for former in item.was
        if (before := former_place(lesson.key, former)) not in in_use
    ]
    slugs = {lesson.key for lesson in lessons}
    was = {
        lesson.key: [key for one in lesson.was if (key := f"{lesson.course}/{one}") not in slugs] for lesson in lessons
    }
    led = {before for before, _ in cells}
    for (there, name), after in cells:
        if there != after[0]:
            yield Rename(there, after[0], name, after[1])
            for former in was.get(there, ()):  # its work may still be under a former name of that lesson
                if (former, name) not in led:
                    yield Rename(former, after[0], name, after[1])
    for present, keys in was.items():
        for former in keys:
            yield Rename(former, present)
    for before, after in cells:
        if before[0] == after[0]:
            yield Rename(before[0], after[0], before[1], after[1])


def _items(lesson: Lesson) -> tuple[Cell | Quiz | Prediction, ...]:
    return (*lesson.cells, *lesson.quizzes, *lesson.predictions)
