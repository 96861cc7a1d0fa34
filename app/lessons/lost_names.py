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


def lost_names(published: Iterable[Lesson], now: CatalogView) -> Iterator[LessonFileError]:
    """Yield a warning for each name that lessons had when they were published, and that leads nowhere now."""
    for before in published:
        if before.language != DEFAULT_LANGUAGE or before.status is LessonStatus.draft:
            continue
        folder = now.root / before.course
        lesson = now.find_lesson(before.key, DEFAULT_LANGUAGE)
        if lesson is None:
            if not (folder / before.slug / "lesson.md").is_file():  # else its own errors say why it cannot be read
                yield _warning(folder / "course.toml", "lesson", before.slug, f"was: [{before.slug}]")
            continue
        kinds = (("cell", before.cells, lesson.cells), ("quiz", before.quizzes, lesson.quizzes))
        for kind, items, present in (*kinds, ("prediction", before.predictions, lesson.predictions)):
            known = {name for item in present for name in (item.name, *item.was)}
            for item in items:
                if item.name not in known:
                    path = folder / lesson.slug / "lesson.md"
                    yield _warning(path, kind, item.name, f":was: {item.name}")


def _warning(path: Path, kind: str, name: str, was: str) -> LessonFileError:
    text = (
        f"the {kind} '{name}' was published and is gone, so learners lose what they did in it, its comments and its XP;"
        f" if it has a new name, write '{was}' there"
    )
    return LessonFileError(path, 1, text, blocks=False, warning=True)


class LostNames:
    """The names that were lost while a server ran. Each is named until it leads somewhere again, for a day at most."""

    def __init__(self) -> None:
        self._before: list[tuple[datetime, Lesson]] = []
        """Lessons as they were before they lost a name, and when that was."""

    def since(self, published: Iterable[Lesson], now: CatalogView) -> tuple[LessonFileError, ...]:
        """The warnings about these lessons, which were published until now, and about those of earlier changes."""
        at = datetime.now(UTC)
        earlier = [(since, lesson) for since, lesson in self._before if at - since < _NAMED_FOR]
        self._before, found = [], []
        for since, lesson in [*earlier, *((at, lesson) for lesson in published)]:
            warnings = list(lost_names([lesson], now))
            if warnings:
                self._before.append((since, lesson))
                found += warnings
        return tuple(dict.fromkeys(found))
