"""What learners would lose: names of lessons, cells and questions that were published and no longer lead anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from app.i18n import DEFAULT_LANGUAGE
from app.lessons.errors import LessonFileError
from app.lessons.model import Lesson, LessonStatus

if TYPE_CHECKING:
    from app.lessons.catalog import CatalogView

_NAMED_FOR = timedelta(days=1)
_PUBLISHED_AFTER = timedelta(minutes=10)
"""Before that, a name may be one that an editor saved while it was typed."""

_Name = tuple[str, str, str]
"""The key of a lesson, a kind, and a name of that kind in it."""


def lost_names(published: Iterable[Lesson], now: CatalogView) -> Iterator[LessonFileError]:
    """Yield a warning for each name that lessons had when they were published, and that leads nowhere now."""
    for before in published:
        for _, warning in _losses(before, now):
            yield warning


def _losses(before: Lesson, now: CatalogView) -> Iterator[tuple[_Name, LessonFileError]]:
    if before.language != DEFAULT_LANGUAGE or before.status is LessonStatus.draft:
        return
    folder = now.root / before.course
    lesson = now.find_lesson(before.key, DEFAULT_LANGUAGE)
    if lesson is None:
        if not (folder / before.slug / "lesson.md").is_file():  # else its own errors say why it cannot be read
            path = folder / "course.toml"
            yield (before.key, "lesson", before.slug), _warning(path, "lesson", before.slug, f"was: [{before.slug}]")
        return
    kinds = (("cell", before.cells, lesson.cells), ("quiz", before.quizzes, lesson.quizzes))
    for kind, items, present in (*kinds, ("prediction", before.predictions, lesson.predictions)):
        known = {name for item in present for name in (item.name, *item.was)}
        for item in items:
            if item.name not in known:
                path = folder / lesson.slug / "lesson.md"
                yield (before.key, kind, item.name), _warning(path, kind, item.name, f":was: {item.name}")


def _warning(path: Path, kind: str, name: str, was: str) -> LessonFileError:
    text = (
        f"the {kind} '{name}' was published and is gone, so learners lose what they did in it, its comments and its XP;"
        f" if it has a new name, write '{was}' there"
    )
    return LessonFileError(path, 1, text, blocks=False, warning=True)


class LostNames:
    """The names that were lost while a server ran. Each is named until it leads somewhere again, for a day at most.

    Time passes only while files change: ``since`` is called when they have.
    """

    def __init__(self) -> None:
        self._published_at: dict[_Name, datetime] = {}
        """Since when each name was published, also of those that are gone: they may become former names."""
        self._loaded_at = datetime.min.replace(tzinfo=UTC)
        """When the lessons that are published now were loaded. For those of the first time, nobody knows since when."""
        self._before: list[tuple[datetime, Lesson, frozenset[_Name]]] = []
        """When a lesson lost names, the lesson as it was before, and the names."""

    def since(self, published: Iterable[Lesson], now: CatalogView) -> tuple[LessonFileError, ...]:
        """The warnings about these lessons, which were published until now, and about those of earlier changes."""
        at, replaced = datetime.now(UTC), list(published)
        known, new = self._published_at, self._loaded_at
        self._published_at = known | {
            name: min(known.get(each, new) for each in (name, *former))
            for lesson in replaced
            for name, former in _names(lesson)
        }
        if replaced:
            self._loaded_at = at
        settled = frozenset(name for name, since in self._published_at.items() if at - since >= _PUBLISHED_AFTER)
        earlier = [entry for entry in self._before if at - entry[0] < _NAMED_FOR]
        self._before = []
        found: list[LessonFileError] = []
        for since, lesson, named in [*earlier, *((at, lesson, settled) for lesson in replaced)]:
            lost = {name: warning for name, warning in _losses(lesson, now) if name in named}
            if lost:
                self._before.append((since, lesson, frozenset(lost)))
                found += lost.values()
        return tuple(dict.fromkeys(found))


def _names(lesson: Lesson) -> Iterator[tuple[_Name, list[_Name]]]:
    """Each name in a lesson, and its former names, under which learners may have worked before."""
    yield (lesson.key, "lesson", lesson.slug), []
    for kind, items in (("cell", lesson.cells), ("quiz", lesson.quizzes), ("prediction", lesson.predictions)):
        for item in items:
            yield (lesson.key, kind, item.name), [(lesson.key, kind, name) for name in item.was]
