"""The current courses and lessons, reloaded when their files change.

A Catalog replaces its Snapshot as a whole, so readers never see half of a change. Files are read in a thread, so the
event loop is not blocked. Drafts are visible only to instructors, through the view ``with_drafts``.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import structlog
from watchfiles import Change, DefaultFilter, awatch

from app.i18n import DEFAULT_LANGUAGE
from app.lessons.added_courses import AddedCourse
from app.lessons.errors import CourseNotFound, LessonFileError, LessonNotFound, LessonUnavailable
from app.lessons.last_good import LastGoodCourses
from app.lessons.lost_names import LostNames
from app.lessons.model import Course, Exercise, Lesson
from app.lessons.snapshot import Snapshot, has_courses, joined, load_snapshot, without_drafts

_log = structlog.get_logger(__name__)

_DEBOUNCE_MS = 300
_LOOK_AT_CLOCK_MS = 1000
"""How often it looks whether a scheduled lesson is due."""
_WATCH_RETRY_DELAY_S = 5.0


@dataclass(frozen=True, slots=True)
class OutlineLesson:
    """A lesson in an outline. ``lesson`` is None if the lesson is unavailable."""

    slug: str
    number: int
    lesson: Lesson | None

    @property
    def title(self) -> str:
        """The lesson's title, or its slug if the lesson is unavailable."""
        return self.lesson.title if self.lesson else self.slug


@dataclass(frozen=True, slots=True)
class OutlineModule:
    """A module in an outline, with its lessons."""

    slug: str
    title: str
    lessons: tuple[OutlineLesson, ...]


@dataclass(frozen=True, slots=True)
class Outline:
    """A course in one language, with all lessons that it lists."""

    course: Course
    modules: tuple[OutlineModule, ...]

    @property
    def lessons(self) -> tuple[OutlineLesson, ...]:
        """All lessons, in order."""
        return tuple(entry for module in self.modules for entry in module.lessons)

    @property
    def requirements(self) -> Mapping[str, tuple[Lesson, ...]]:
        """The lessons to read first, by the slug of each lesson that names some that are available."""
        available = [entry.lesson for entry in self.lessons if entry.lesson]
        there = {slug: lesson for lesson in available for slug in (*lesson.was, lesson.slug)}
        return {
            lesson.slug: found
            for lesson in available
            if (found := tuple(there[slug] for slug in lesson.requires if slug in there))
        }


class CatalogView:
    """Queries, each on one snapshot; safe from any thread."""

    def __init__(self, root: Path, *, added: Path | None = None, shows_drafts: bool = False) -> None:
        self.root = root
        self.added = added
        self.shows_drafts = shows_drafts
        self.snapshot = Snapshot()

    @property
    def hidden(self) -> frozenset[str]:
        """The drafts that this view hides, as ``course/slug``."""
        return frozenset()

    @property
    def digest(self) -> str:
        """Changes whenever anything in the catalog that a page could show changes."""
        return self.snapshot.digest

    def courses(self, language: str) -> tuple[Course, ...]:
        return tuple(course.speaking(language) for course in self.snapshot.courses.values())

    def course(self, slug: str, language: str) -> Course:
        """The course with this slug.

        Raises:
            CourseNotFound: it does not exist.
        """
        source = self.snapshot.courses.get(slug)
        if source is None:
            raise CourseNotFound(course=slug[:80])
        return source.speaking(language)

    def origin(self, slug: str) -> AddedCourse | None:
        """Where a course comes from that ``lockstep course add`` has copied; None for all others."""
        source = self.snapshot.courses.get(slug)
        return source.origin if source is not None else None

    def lesson(self, course: str, slug: str, language: str) -> Lesson:
        """The lesson in the requested language, or in English if it has no translation. Former slugs find it, too.

        Raises:
            CourseNotFound, LessonNotFound: it does not exist.
            LessonUnavailable: its file has an error, and no valid version was loaded before.
        """
        snapshot = self.snapshot
        if course not in snapshot.courses:
            raise CourseNotFound(course=course[:80])
        by_language = snapshot.lessons.get((course, self.current_slug(course, slug)))
        if by_language is None:
            raise LessonNotFound(course=course, slug=slug[:80])
        lesson = _in_language(by_language, language)
        if lesson is None:
            raise LessonUnavailable(course=course, slug=slug)
        return lesson

    def current_slug(self, course: str, slug: str) -> str:
        """What the lesson is called now, if this is one of its former slugs; else ``slug``."""
        return self.snapshot.former.get(f"{course}/{slug}", slug).rpartition("/")[2]

    def find_lesson(self, key: str, language: str) -> Lesson | None:
        """The lesson ``key`` (``course/slug``); None if it does not exist or cannot be read."""
        course, _slash, slug = key.partition("/")
        try:
            return self.lesson(course, slug, language)
        except (CourseNotFound, LessonNotFound, LessonUnavailable):
            return None

    def lesson_title(self, key: str, language: str) -> str:
        """The title of the lesson ``key`` (``course/slug``), or its slug if the lesson can no longer be read."""
        lesson = self.find_lesson(key, language)
        return key.partition("/")[2] if lesson is None else lesson.title

    def cell_title(self, key: str, name: str, language: str) -> str:
        """The title of a cell of the lesson ``key`` (``course/slug``), or its name if it no longer exists."""
        lesson = self.find_lesson(key, language)
        cell = lesson.cell(name) if lesson is not None else None
        return name if cell is None else cell.title

    def check_title(self, key: str, cell_name: str, name: str, language: str) -> str:
        """The title of the check ``name`` of an exercise of the lesson ``key``, or its name if it no longer exists.

        It is plain text: without the backticks around code.
        """
        exercise = self.find_exercise(key, cell_name, language)
        checks = exercise.checks if exercise is not None else ()
        return next((check.title.replace("`", "") for check in checks if check.name == name), name)

    def find_exercise(self, key: str, cell_name: str, language: str) -> Exercise | None:
        """The exercise in a cell of the lesson ``key``; None if it no longer exists."""
        lesson = self.find_lesson(key, language)
        cell = lesson.cell(cell_name) if lesson is not None else None
        return cell.exercise if cell is not None else None

    def outline(self, course: str, language: str) -> Outline:
        """A course with its lessons, each in the requested language or in English.

        Raises:
            CourseNotFound: it does not exist.
        """
        snapshot = self.snapshot
        source = snapshot.courses.get(course)
        if source is None:
            raise CourseNotFound(course=course[:80])
        numbers = {slug: number for number, slug in enumerate(source.lessons, 1)}
        spoken = source.speaking(language)
        modules = tuple(
            OutlineModule(
                module.slug,
                module.title,
                tuple(
                    OutlineLesson(slug, numbers[slug], _in_language(snapshot.lessons.get((course, slug), {}), language))
                    for slug in module.lessons
                ),
            )
            for module in spoken.modules
        )
        return Outline(spoken, modules)

    def find_outline(self, course: str, language: str) -> Outline | None:
        """The outline of a course; None if the course does not exist."""
        return self.outline(course, language) if course in self.snapshot.courses else None

    def neighbours(self, lesson: Lesson, language: str) -> tuple[Lesson | None, Lesson | None]:
        """The lessons before and after, or None; skips lessons that are unavailable."""
        there = [entry.lesson for entry in self.outline(lesson.course, language).lessons if entry.lesson]
        before = [other for other in there if other.number < lesson.number]
        after = [other for other in there if other.number > lesson.number]
        return (before[-1] if before else None), (after[0] if after else None)

    def mistakes(self, course: str = "", slug: str = "") -> tuple[LessonFileError, ...]:
        """The errors in the files of a lesson, of a course or of all courses, for instructors; others see none."""
        if not self.shows_drafts:
            return ()
        return tuple(mistake for mistake in self.snapshot.mistakes if self._is_about(mistake.path, course, slug))

    def _is_about(self, path: Path, course: str, slug: str) -> bool:
        folder = self.root_of(path) / course
        return path.is_relative_to(folder / slug) or path == folder / "course.toml"

    def root_of(self, path: Path) -> Path:
        """The folder of courses that a file is in."""
        return self.added if self.added is not None and path.is_relative_to(self.added) else self.root

    def every(self) -> Iterator[Lesson]:
        """Yield every lesson in each of its languages, in the order of the courses."""
        snapshot = self.snapshot
        for course in snapshot.courses.values():
            for slug in course.lessons:
                yield from snapshot.lessons[course.slug, slug].values()


class Catalog(CatalogView):
    """The catalog for everyone; ``with_drafts`` is the one for instructors. If ``quiet``, errors are not logged.

    Names that published lessons lose while it is loaded are among the errors in the files, as warnings.

    ``added`` is the folder of the courses that ``lockstep course add`` has copied. With a folder ``kept``, the last
    good version of each course of ``root`` is kept there, and survives a restart.
    """

    def __init__(self, root: Path, *, added: Path | None = None, quiet: bool = False, kept: Path | None = None) -> None:
        self._quiet = quiet
        self._last_good = LastGoodCourses(root, kept) if kept is not None else None
        self._loaded = False
        self._lost_names = LostNames(kept)
        super().__init__(root, added=added)
        self.with_drafts = CatalogView(root, added=added, shows_drafts=True)
        self._loading = threading.Lock()
        self._afterwards: list[Callable[[], None]] = []

    # --- keeping it up to date ---

    def after_reload(self, follow: Callable[[], None]) -> None:
        """Register a function to call after each reload, for files next to the courses."""
        self._afterwards.append(follow)

    def reload(self) -> None:
        """Read the changed files and replace the snapshot. A file with an error keeps its last valid version."""
        with self._loading:
            before = self.with_drafts.snapshot
            published = [lesson for lesson in self.every() if lesson.source_path.is_relative_to(self.root)]
            after = self._load(before)
            if self.added is not None and has_courses(self.added):
                after = joined(after, load_snapshot(self.added, before))
            self.with_drafts.snapshot = after
            if lost := self._lost_names.since(published, self.with_drafts):
                after = replace(after, mistakes=tuple(sorted({*after.mistakes, *lost})))
                self.with_drafts.snapshot = after
            self.snapshot = without_drafts(after)
            for follow in self._afterwards:
                follow()
        if self._quiet:
            return
        for mistake in after.mistakes:
            if mistake not in before.mistakes:
                _log.warning("lesson_mistake", where=f"{mistake.path}:{mistake.line}", what=mistake.text)
        if after.digest != before.digest:
            _log.info("lessons_loaded", lessons=len(after.lessons), mistakes=len(after.mistakes))

    def _load(self, before: Snapshot) -> Snapshot:
        after = load_snapshot(self.root, before)
        if self._last_good is not None:
            if not self._loaded and any(mistake.blocks for mistake in after.mistakes):
                after = load_snapshot(self.root, self._last_good.behind(after))
            self._last_good.keep(after)
        self._loaded = True
        return after

    async def watch(self) -> None:
        """Reload whenever a file changes or a lesson is due, until canceled. Runs as long as the application."""
        while True:
            try:
                async for changes in awatch(
                    *self._watched(),
                    watch_filter=_ContentFilter(),
                    debounce=_DEBOUNCE_MS,
                    rust_timeout=_LOOK_AT_CLOCK_MS,
                    yield_on_timeout=True,
                ):
                    if changes or self._publication_is_due():
                        await asyncio.to_thread(self.reload)
            except (OSError, RuntimeError) as e:  # the folder is missing, or the system has no free watches
                _log.warning("lessons_not_watched", error=str(e), again_in_s=_WATCH_RETRY_DELAY_S)
                await asyncio.sleep(_WATCH_RETRY_DELAY_S)
                await asyncio.to_thread(self.reload)

    def _publication_is_due(self) -> bool:
        due = self.with_drafts.snapshot.next_publication
        return due is not None and due <= datetime.now(UTC)

    def _watched(self) -> list[Path]:
        if self.added is None:
            return [self.root]
        with suppress(OSError):  # read-only: nothing can be added
            self.added.mkdir(exist_ok=True)
        return [self.root, *([self.added] if self.added.is_dir() else [])]

    @property
    def problems(self) -> tuple[LessonFileError, ...]:
        """All errors in the current files."""
        return self.with_drafts.snapshot.mistakes

    @property
    def hidden(self) -> frozenset[str]:
        """The drafts, as ``course/slug``."""
        return self.with_drafts.snapshot.drafts

    @property
    def differs_for_instructors(self) -> bool:
        """Whether instructors see something that others do not: drafts, or the errors in the files."""
        return bool(self.hidden or self.problems)


def _in_language(by_language: Mapping[str, Lesson], language: str) -> Lesson | None:
    return by_language.get(language) or by_language.get(DEFAULT_LANGUAGE)


class _ContentFilter(DefaultFilter):
    """Lets changes of lessons and courses pass, but not editors' swap files or Python's caches."""

    def __call__(self, change: Change, path: str) -> bool:
        return super().__call__(change, path) and not Path(path).name.startswith((".", "#"))
