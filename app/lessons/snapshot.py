"""Reads a folder of courses into a Snapshot: all lessons in all their languages, and all errors.

Unchanged files are not read again, and a file with errors leaves its last valid version in use. So a Snapshot is made
from the folder and the previous Snapshot, and never changes afterwards.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path

import structlog

from app.i18n import DEFAULT_LANGUAGE, LANGUAGE_CODES
from app.lessons.added_courses import read_source
from app.lessons.assets import cover_path, find_cover
from app.lessons.course_file import CourseSource, parse_course
from app.lessons.cross_references import lesson_path, reference_errors
from app.lessons.directives import LessonError
from app.lessons.document import Document, LessonDecodeError, decode_source, parse_document
from app.lessons.errors import LessonFileError
from app.lessons.exercise_files import (
    CHECKS_FILE,
    ExerciseFiles,
    exercises_without_checks,
    files_without_exercise,
    load_exercise_files,
)
from app.lessons.former_names import former_lessons
from app.lessons.front_matter import SLUG_PATTERN
from app.lessons.included_files import included_file_stamps
from app.lessons.model import Lesson, LessonStatus
from app.lessons.render import content_digest, render_lesson

_log = structlog.get_logger(__name__)

LessonKey = tuple[str, str]
"""Course and lesson."""


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """The result of reading one file of a lesson."""

    digest: str
    document: Document | None
    lesson: Lesson | None
    """The lesson with exactly this text; None if the text has a blocking error."""
    shown: Lesson | None
    """``lesson``, or the last valid version."""
    mistakes: tuple[LessonFileError, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The whole catalog at one moment."""

    courses: Mapping[str, CourseSource] = field(default_factory=dict)
    lessons: Mapping[LessonKey, Mapping[str, Lesson]] = field(default_factory=dict)
    """By language. A lesson that could never be read has an empty mapping."""
    mistakes: tuple[LessonFileError, ...] = ()
    readings: Mapping[Path, LoadedFile] = field(default_factory=dict)
    digest: str = ""
    """Changes with anything that an outline shows."""
    drafts: frozenset[str] = frozenset()
    """The lessons that are drafts, or scheduled for later, as ``course/slug``."""
    former: Mapping[str, str] = field(default_factory=dict)
    """The present key of each lesson that was renamed, by its former key."""
    next_publication: datetime | None = None
    """When the first of the scheduled lessons becomes visible."""


def without_drafts(snapshot: Snapshot) -> Snapshot:
    """A snapshot without drafts, and without modules and courses that have only drafts."""
    if not snapshot.drafts:
        return snapshot
    courses: dict[str, CourseSource] = {}
    lessons: dict[LessonKey, Mapping[str, Lesson]] = {}
    for source in snapshot.courses.values():
        course = source.without({key.partition("/")[2] for key in snapshot.drafts if key.startswith(f"{source.slug}/")})
        if source.lessons and not course.lessons:
            continue
        courses[course.slug] = course
        for number, slug in enumerate(course.lessons, 1):
            lessons[course.slug, slug] = {
                language: replace(lesson, number=number, total=len(course.lessons))
                for language, lesson in snapshot.lessons[course.slug, slug].items()
            }
    return replace(
        snapshot,
        courses=courses,
        lessons=lessons,
        digest=_outline_digest(courses, lessons),
        drafts=frozenset(),
        former=_former_lessons(courses, lessons, snapshot.drafts),
    )


def has_courses(root: Path) -> bool:
    """Whether a folder that may be missing has a course."""
    try:
        return bool(_course_folders(root))
    except OSError:
        return False


def joined(own: Snapshot, added: Snapshot) -> Snapshot:
    """The courses of two folders. Of two with the same name, that of ``own`` counts."""

    def is_new(key: str) -> bool:
        return key.partition("/")[0] not in own.courses

    publications = (at for at in (own.next_publication, added.next_publication) if at is not None)
    return Snapshot(
        courses={**own.courses, **{name: course for name, course in added.courses.items() if is_new(name)}},
        lessons={**own.lessons, **{key: shown for key, shown in added.lessons.items() if is_new(key[0])}},
        mistakes=tuple(sorted({*own.mistakes, *added.mistakes})),
        readings={**added.readings, **own.readings},
        digest=content_digest(own.digest, added.digest),
        drafts=own.drafts | frozenset(filter(is_new, added.drafts)),
        former={**own.former, **{key: now for key, now in added.former.items() if is_new(key)}},
        next_publication=min(publications, default=None),
    )


def load_snapshot(root: Path, before: Snapshot) -> Snapshot:
    """Read the folder of courses."""
    courses: dict[str, CourseSource] = {}
    mistakes: list[LessonFileError] = []
    readings: dict[Path, LoadedFile] = {}
    try:
        folders = _course_folders(root)
    except OSError as e:
        wrong_folder = f"the folder cannot be read: {e.strerror}; allow it for user {os.geteuid()}"
        return replace(before, mistakes=(LessonFileError(root, 1, wrong_folder),))
    listed: dict[str, tuple[str, ...]] = {}
    for folder in folders:
        written, shown, wrong = _load_course(folder, before.courses.get(folder.name))
        mistakes += wrong
        listed[folder.name] = tuple(
            dict.fromkeys(slug for course in (written, shown) if course is not None for slug in course.lessons)
        )
        if shown is not None:
            courses[shown.slug] = shown
        for slug in listed[folder.name]:
            if _is_closed(folder / slug):  # the course's own file says so, too
                readings |= {path: file for path, file in before.readings.items() if path.is_relative_to(folder / slug)}
            else:
                readings |= _load_lesson(folder / slug, folder.name, before.readings)
    mistakes += _folders_without_course(root)
    if not courses and not mistakes:
        mistakes.append(LessonFileError(root, 1, "there is no course here; add a folder with a course.toml"))
    now = datetime.now(UTC)
    lessons = {key: lesson for course in courses.values() for key, lesson in _assemble(root, course, readings, now)}
    mistakes += [mistake for reading in readings.values() for mistake in reading.mistakes]
    documents = {path: reading.document for path, reading in readings.items() if reading.document is not None}
    mistakes += reference_errors(root, documents, listed)
    drafts = frozenset(
        f"{course}/{slug}"
        for (course, slug), shown in lessons.items()
        if _is_draft(shown, readings.get(lesson_path(root, course, slug, DEFAULT_LANGUAGE)), now)
    )
    scheduled = [lesson.publish_at for shown in lessons.values() for lesson in shown.values() if lesson.publish_at]
    return Snapshot(
        courses,
        lessons,
        tuple(sorted(set(mistakes))),
        readings,
        _outline_digest(courses, lessons),
        drafts,
        _former_lessons(courses, lessons),
        min((at for at in scheduled if at > now), default=None),
    )


def _is_draft(shown: Mapping[str, Lesson], english: LoadedFile | None, now: datetime) -> bool:
    """Whether a lesson is a draft. If it was never valid, its front matter decides, if that can be read."""
    if shown:
        return any(lesson.status is LessonStatus.draft for lesson in shown.values())
    if english is None or english.document is None:
        return False
    header = english.document.header
    return header.status in (None, LessonStatus.draft) or _is_ahead(header.publish_at, now)


def _is_ahead(publish_at: datetime | None, now: datetime) -> bool:
    return publish_at is not None and publish_at > now


def _course_folders(root: Path) -> list[Path]:
    if not root.is_dir():
        return []
    return sorted(child for child in root.iterdir() if _may_be_course(child))


def _may_be_course(folder: Path) -> bool:
    """Whether it has the file of a course, or hides whether it has."""
    try:
        return (folder / "course.toml").is_file()
    except PermissionError:
        return bool(SLUG_PATTERN.fullmatch(folder.name))


def _is_closed(folder: Path) -> bool:
    """Whether this user may not list it. Searches of pathlib find nothing there, since Python 3.13 without an error."""
    try:
        with os.scandir(folder):
            return False
    except PermissionError:
        return True
    except OSError:
        return False


def _folders_without_course(root: Path) -> Iterator[LessonFileError]:
    """Yield an error for each folder that has lessons or notebooks, but no file of a course."""
    folders = (child for child in root.iterdir() if SLUG_PATTERN.fullmatch(child.name)) if root.is_dir() else ()
    for folder in sorted(folders):
        with suppress(OSError):
            if (folder / "course.toml").is_file() or not folder.is_dir():
                continue
            if any(next(folder.glob(pattern), None) for pattern in ("*/lesson.md", "*.md", "*.ipynb")):
                text = "the folder has no course.toml, so it is not a course; add one that lists its lessons"
                yield LessonFileError(folder, 1, text, blocks=False)


def _load_course(
    folder: Path, before: CourseSource | None
) -> tuple[CourseSource | None, CourseSource | None, list[LessonFileError]]:
    """The course as it is written, the one to show, and the errors. With an error, that is the course as it was."""
    path = folder / "course.toml"
    if not SLUG_PATTERN.fullmatch(folder.name):
        wrong_name = "the folder's name is not a slug; use lowercase letters, digits, and hyphens"
        return None, None, [LessonFileError(path, 1, wrong_name)]
    text = ""
    try:
        text = decode_source(path.read_bytes())
        course, faults = parse_course(text, folder.name)
    except LessonDecodeError as e:
        course, faults = None, [e.fault]
    except OSError as e:
        course, faults = None, [LessonError(1, f"the file cannot be read: {e.strerror}; check its permissions")]
    if course is None:
        return None, before, _file_errors(path, faults)
    course = replace(course, cover=find_cover(folder / "cover.png"))
    if (origin := read_source(folder)) is not None:
        course = replace(course, origin=origin)
    there = {lesson.parent.name for lesson in folder.glob("[!.]*/lesson.md")}
    unlisted = sorted(there - set(course.lessons))
    missing = [slug for slug in course.lessons if slug not in there and before and slug not in before.lessons]
    faults += [_missing_lesson(slug, text, unlisted) for slug in missing]
    mistakes = _file_errors(path, faults)
    for slug in unlisted:
        not_listed = f"the lesson '{slug}' is not in any module; add it to the lessons of one"
        mistakes.append(LessonFileError(path, 1, not_listed, blocks=False))
    return course.without(missing), before if any(fault.blocks for fault in faults) else course, mistakes


def _missing_lesson(slug: str, text: str, unlisted: list[str]) -> LessonError:
    """The error of a lesson that the course has just begun to list."""
    line = next((number for number, row in enumerate(text.split("\n"), 1) if f'"{slug}"' in row), 1)
    meant = get_close_matches(slug, unlisted, n=1)
    hint = f"did you mean '{meant[0]}'?" if meant else f"write {slug}/lesson.md, or correct the name"
    return LessonError(line, f"there is no lesson '{slug}' in this folder; {hint}")


def _load_lesson(folder: Path, course: str, before: Mapping[Path, LoadedFile]) -> dict[Path, LoadedFile]:
    path = folder / "lesson.md"
    files = load_exercise_files(folder)
    english = _load_file(path, course, DEFAULT_LANGUAGE, before.get(path), None, files)
    mistakes = list(files.mistakes)
    if english.document is not None:
        mistakes += files_without_exercise(english.document, files, folder)
    readings = {path: english}
    if mistakes:
        readings[folder / CHECKS_FILE] = LoadedFile("", None, None, None, tuple(mistakes))
    for other in sorted(folder.glob("lesson.*.md")):
        language = other.name.split(".")[1]
        if language not in LANGUAGE_CODES or language == DEFAULT_LANGUAGE:
            text = f"unknown language '{language}' in the file's name; use {', '.join(LANGUAGE_CODES[1:])}"
            readings[other] = LoadedFile("", None, None, None, (LessonFileError(other, 1, text, blocks=False),))
        elif english.document is not None:
            reading = _load_file(other, course, language, before.get(other), english.document, files)
            readings[other] = reading if english.lesson else _keep_previous(reading, before.get(other))
        elif other in before:
            readings[other] = before[other]
    return readings


def _keep_previous(reading: LoadedFile, before: LoadedFile | None) -> LoadedFile:
    """While the English lesson has an error, keep showing the previous version of its translation."""
    return replace(reading, digest="", shown=before.shown if before else None)


def _load_file(
    path: Path,
    course: str,
    language: str,
    before: LoadedFile | None,
    english: Document | None,
    files: ExerciseFiles,
) -> LoadedFile:
    shown = before.shown if before else None
    try:
        source = decode_source(path.read_bytes())
    except FileNotFoundError:
        fault = LessonError(1, "the file is missing; write it, or remove the lesson from course.toml")
        return LoadedFile("", None, None, shown, _single_error(path, fault))
    except OSError as e:
        return LoadedFile(
            "", None, None, shown, _single_error(path, LessonError(1, f"the file cannot be read: {e.strerror}"))
        )
    except LessonDecodeError as e:
        return LoadedFile("", None, None, shown, _single_error(path, e.fault))
    name = f"{course}/{path.parent.name}/{path.name}"
    digest = content_digest(name, source, english.source if english else "", files.text, *_file_stamps(path))
    if before is not None and before.digest == digest:
        return before
    try:
        return _read_file(path, course, language, source, digest, shown, english, files)
    except Exception:  # an error in one lesson must not affect the others
        _log.exception("lesson_reader_failed", path=str(path))
        fault = LessonError(1, "Lockstep failed on this file; its log has the traceback; please report it")
        return LoadedFile("", None, None, shown, _single_error(path, fault))


def _file_stamps(path: Path) -> Iterator[str]:
    """What a page may include besides the file itself: names, times and sizes of its SVGs, code, tables and others."""
    for file in sorted(path.parent.glob("assets/**/*.svg")):
        with suppress(OSError):
            yield f"{file.name} {file.stat().st_mtime_ns} {file.stat().st_size}"
    yield from included_file_stamps(path.parent)


def _read_file(
    path: Path,
    course: str,
    language: str,
    source: str,
    digest: str,
    shown: Lesson | None,
    english: Document | None,
    files: ExerciseFiles,
) -> LoadedFile:
    document = parse_document(source, language, english, path.parent)
    unjudged = exercises_without_checks(document, files) if english is None else ()
    mistakes = tuple(_file_errors(path, [*document.faults, *unjudged]))
    if files.blocks or any(mistake.blocks for mistake in mistakes):
        return LoadedFile(digest, document, None, shown, mistakes)
    lesson = render_lesson(
        document,
        course=course,
        slug=path.parent.name,
        languages=(language,),
        path=path,
        digest=digest,
        files=files,
    )
    return LoadedFile(digest, document, lesson, lesson, mistakes)


def _file_errors(path: Path, faults: list[LessonError] | tuple[LessonError, ...]) -> list[LessonFileError]:
    return [LessonFileError(path, fault.line, fault.text, fault.blocks, fault.warning) for fault in faults]


def _single_error(path: Path, fault: LessonError) -> tuple[LessonFileError, ...]:
    return tuple(_file_errors(path, [fault]))


# --- between files ---------------------------------------------------------------------------------------------


def _assemble(
    root: Path, course: CourseSource, readings: Mapping[Path, LoadedFile], now: datetime
) -> Iterator[tuple[LessonKey, dict[str, Lesson]]]:
    slugs = course.lessons
    for number, slug in enumerate(slugs, 1):
        shown = {}
        for language in LANGUAGE_CODES:
            reading = readings.get(lesson_path(root, course.slug, slug, language))
            if reading is not None and reading.shown is not None:
                lesson = reading.shown
                status = LessonStatus.draft if _is_ahead(lesson.publish_at, now) else lesson.status
                shown[language] = replace(lesson, status=status, cover=find_cover(cover_path(lesson.source_path)))
        languages = tuple(shown)
        yield (
            (course.slug, slug),
            {
                language: replace(lesson, languages=languages, number=number, total=len(slugs))
                for language, lesson in shown.items()
            },
        )


def _former_lessons(
    courses: Mapping[str, CourseSource],
    lessons: Mapping[LessonKey, Mapping[str, Lesson]],
    hidden: Collection[str] = (),
) -> dict[str, str]:
    """The present key of each former one. A hidden lesson keeps its slug to itself."""
    found: dict[str, str] = {}
    for course in courses.values():
        was: dict[str, tuple[str, ...]] = {
            key.partition("/")[2]: () for key in hidden if key.startswith(f"{course.slug}/")
        }
        for slug in course.lessons:
            was[slug] = next(iter(lessons[course.slug, slug].values())).was if lessons[course.slug, slug] else ()
        found |= former_lessons(course.slug, was)
    return found


def _outline_digest(courses: Mapping[str, CourseSource], lessons: Mapping[LessonKey, Mapping[str, Lesson]]) -> str:
    shown = [
        f"{key}{language}{lesson.digest}{lesson.status}{lesson.languages}{lesson.number}{lesson.total}{lesson.cover}"
        for key, by_language in sorted(lessons.items())
        for language, lesson in sorted(by_language.items())
    ]
    return content_digest(repr(sorted(courses.items())), *shown)
