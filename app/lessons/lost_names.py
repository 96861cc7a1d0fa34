"""What learners would lose: names of lessons, cells and questions that were published and no longer lead anywhere.

A server keeps those that it has lost in a file beside the copies of the courses, for its next start and for
``lockstep lesson check``: by then, the copies have lost them, too.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import AwareDatetime, TypeAdapter, ValidationError

from app.i18n import DEFAULT_LANGUAGE
from app.lessons.errors import LessonFileError
from app.lessons.former_names import former_place
from app.lessons.model import Lesson, LessonStatus

if TYPE_CHECKING:
    from app.lessons.catalog import CatalogView

_FILE = "lost-names.json"
_NAMED_FOR = timedelta(days=1)
_PUBLISHED_AFTER = timedelta(minutes=10)
"""Before that, a name may be one that an editor saved while it was typed."""

_Name = tuple[str, str, str]
"""The key of a lesson, a kind, and a name of that kind in it."""
_LOST = TypeAdapter(list[tuple[_Name, AwareDatetime]])


def lost_names(published: Iterable[Lesson], now: CatalogView) -> Iterator[LessonFileError]:
    """Yield a warning for each name that lessons had when they were published, and that leads nowhere now."""
    for before in published:
        for _, warning in _losses(_published_names(before), now):
            yield warning


def names_lost_while_served(folder: Path, now: CatalogView) -> Iterator[LessonFileError]:
    """Yield the warnings of a server that keeps its copies of the courses in this folder, except what was corrected."""
    for _, warning in _losses(_read(folder), now):
        yield warning


def _published_names(lesson: Lesson) -> list[_Name]:
    """The names under which learners work. Translations have those of the English lesson."""
    published = lesson.language == DEFAULT_LANGUAGE and lesson.status is not LessonStatus.draft
    return [name for name, _ in _names(lesson)] if published else []


def _losses(names: Iterable[_Name], now: CatalogView) -> Iterator[tuple[_Name, LessonFileError]]:
    """Those of the names that lead nowhere. In a lesson that is gone, only the lesson itself is named."""
    by_lesson: defaultdict[str, list[_Name]] = defaultdict(list)
    for name in names:
        by_lesson[name[0]].append(name)
    moved = {each for lesson in now.every() for _, former in _names(lesson) for each in former} if by_lesson else set()
    for key, named in by_lesson.items():
        course, _, slug = key.partition("/")
        # By its former name, it is the lesson of today, of which what moves to other lessons has to be written.
        lesson = now.find_lesson(key, DEFAULT_LANGUAGE)
        if lesson is not None:
            path = now.root / course / lesson.slug / "lesson.md"
            here = (each for present, former in _names(lesson) for each in (present, *former))
            known = {each[1:] for each in here if each[0] == lesson.key}
            for name in named:
                present = (lesson.key, *name[1:])
                if name[1] != "lesson" and name[1:] not in known and moved.isdisjoint((name, present)):
                    yield name, _warning(path, *name[1:], f":was: {name[2]}", f":was: {lesson.slug}#{name[2]}")
        elif not (now.root / key / "lesson.md").is_file():  # else its own errors say why it cannot be read
            path = now.root / course / "course.toml"
            for name in named:
                if name[1] == "lesson":
                    yield name, _warning(path, "lesson", slug, f"was: [{slug}]")


def _warning(path: Path, kind: str, name: str, was: str, moved: str = "") -> LessonFileError:
    text = (
        f"the {kind} '{name}' was published and is gone, so learners lose what they did in it, its comments and its XP;"
        f" if it has a new name, write '{was}' there"
    )
    if moved:
        text += f", or '{moved}' if it is in another lesson now"
    return LessonFileError(path, 1, text, blocks=False, warning=True)


def _read(folder: Path) -> dict[_Name, datetime]:
    """The names that a server has lost in the last day, and when."""
    try:
        read = _LOST.validate_json((folder / _FILE).read_bytes())
    except (OSError, ValidationError):
        return {}
    return {name: since for name, since in read if datetime.now(UTC) - since < _NAMED_FOR}


def _write(folder: Path, lost: Mapping[_Name, datetime]) -> None:
    """Replace the file in one step: several web processes may write it."""
    draft = folder / f".{_FILE}.{os.getpid()}"
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(_LOST.dump_json(list(lost.items())))
        draft.replace(folder / _FILE)


class LostNames:
    """The names that were lost while a server ran. Each is named until it leads somewhere again, for a day at most.

    Time passes only while files change: ``since`` is called when they have. With a folder, they outlast a restart.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._published_at: dict[_Name, datetime] = {}
        """Since when each name was published, also of those that are gone: they may become former names."""
        self._loaded_at = datetime.min.replace(tzinfo=UTC)
        """When the lessons that are published now were loaded. For those of the first time, nobody knows since when."""
        self._lost: dict[_Name, datetime] = {}
        """When each name was lost."""

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
        names = (name for lesson in replaced for name in _published_names(lesson))
        settled = {name: at for name in names if at - self._published_at[name] >= _PUBLISHED_AFTER}
        others = _read(self._folder) if self._folder is not None else {}  # of other web processes
        earlier = {name: since for name, since in (others | self._lost).items() if at - since < _NAMED_FOR}
        candidates = settled | earlier
        found = dict(_losses(candidates, now))
        lost = {name: candidates[name] for name in found}
        if self._folder is not None and lost != others:
            _write(self._folder, lost)
        self._lost = lost
        return tuple(dict.fromkeys(found.values()))


def _names(lesson: Lesson) -> Iterator[tuple[_Name, list[_Name]]]:
    """Each name in a lesson, and its former names, under which learners may have worked before."""
    yield (lesson.key, "lesson", lesson.slug), []
    for kind, items in (("cell", lesson.cells), ("quiz", lesson.quizzes), ("prediction", lesson.predictions)):
        for item in items:
            yield (
                (lesson.key, kind, item.name),
                [(there, kind, name) for there, name in (former_place(lesson.key, former) for former in item.was)],
            )
