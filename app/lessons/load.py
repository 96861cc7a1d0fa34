"""From a folder of courses to a Snapshot: every lesson in every language it can be read in, and every mistake.

A file that has not changed is not read again, and one that has a mistake leaves its last good version in place. So a
Snapshot is made from the folder and the Snapshot before it, and is never changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import structlog

from app.i18n import CODES, DEFAULT
from app.lessons.course_file import CourseSource, read_course
from app.lessons.directives import Fault
from app.lessons.drawings import UnfitDrawing, drawing_at
from app.lessons.errors import Mistake
from app.lessons.header import SLUG
from app.lessons.model import Lesson, Status
from app.lessons.read import Document, NotText, decode, read
from app.lessons.render import digest_of, render
from app.lessons.survey import Reference

log = structlog.get_logger(__name__)

Key = tuple[str, str]
"""Course and lesson."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What came of one file of a lesson."""

    digest: str
    document: Document | None
    lesson: Lesson | None
    """The lesson of this very text; None if it has a mistake that blocks."""
    shown: Lesson | None
    """``lesson``, or the last good one."""
    mistakes: tuple[Mistake, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The whole catalog at one moment."""

    courses: Mapping[str, CourseSource] = field(default_factory=dict)
    lessons: Mapping[Key, Mapping[str, Lesson]] = field(default_factory=dict)
    """By language. A lesson that could never be read has an empty mapping."""
    mistakes: tuple[Mistake, ...] = ()
    readings: Mapping[Path, Reading] = field(default_factory=dict)
    digest: str = ""
    """Changes with anything that the outline shows."""
    drafts: frozenset[str] = frozenset()
    """The lessons that are drafts, ``course/slug`` each."""


def without_drafts(snapshot: Snapshot) -> Snapshot:
    """What everyone may see of a snapshot: as if its drafts, and modules and courses of nothing else, did not exist."""
    if not snapshot.drafts:
        return snapshot
    courses: dict[str, CourseSource] = {}
    lessons: dict[Key, Mapping[str, Lesson]] = {}
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
        snapshot, courses=courses, lessons=lessons, digest=_outline_digest(courses, lessons), drafts=frozenset()
    )


def load(root: Path, before: Snapshot) -> Snapshot:
    """Read the folder of courses."""
    courses: dict[str, CourseSource] = {}
    mistakes: list[Mistake] = []
    readings: dict[Path, Reading] = {}
    for folder in _folders(root):
        course, wrong = _load_course(folder, before.courses.get(folder.name))
        mistakes += wrong
        if course is not None:
            courses[course.slug] = course
            for slug in course.lessons:
                readings |= _load_lesson(folder / slug, course.slug, before.readings)
    if not courses and not mistakes:
        mistakes.append(Mistake(root, 1, "there is no course here; add a folder with a course.toml"))
    lessons = {key: lesson for course in courses.values() for key, lesson in _assemble(root, course, readings)}
    mistakes += [mistake for reading in readings.values() for mistake in reading.mistakes]
    mistakes += [
        mistake for path, reading in readings.items() for mistake in _broken(root, path, reading, readings, courses)
    ]
    drafts = frozenset(
        f"{course}/{slug}"
        for (course, slug), shown in lessons.items()
        if _is_draft(shown, readings.get(_path(root, course, slug, DEFAULT)))
    )
    mistakes = sorted(set(mistakes))
    return Snapshot(courses, lessons, tuple(mistakes), readings, _outline_digest(courses, lessons), drafts)


def _is_draft(shown: Mapping[str, Lesson], english: Reading | None) -> bool:
    """Whether a lesson is a draft. If it could never be shown, its front matter decides, as far as that reads."""
    if shown:
        return any(lesson.status is Status.draft for lesson in shown.values())
    return english is not None and english.document is not None and _status(english.document) is Status.draft


def _status(document: Document) -> Status:
    return document.header.status or Status.draft


def _folders(root: Path) -> list[Path]:
    if not root.is_dir():
        return []
    return sorted(child for child in root.iterdir() if (child / "course.toml").is_file())


def _load_course(folder: Path, before: CourseSource | None) -> tuple[CourseSource | None, list[Mistake]]:
    path = folder / "course.toml"
    if not SLUG.fullmatch(folder.name):
        return None, [Mistake(path, 1, "the folder's name is no slug; use small letters, digits and hyphens")]
    try:
        course, faults = read_course(decode(path.read_bytes()), folder.name)
    except NotText as e:
        course, faults = None, [e.fault]
    except OSError as e:
        course, faults = None, [Fault(1, f"the file cannot be read: {e.strerror}; check its permissions")]
    mistakes = _mistakes(path, faults)
    if course is None:
        return before, mistakes
    listed = set(course.lessons)
    for lesson in sorted(folder.glob("*/lesson.md")):
        if lesson.parent.name not in listed:
            text = f"the lesson '{lesson.parent.name}' is in no module; add it to the lessons of one"
            mistakes.append(Mistake(path, 1, text, blocks=False))
    return course, mistakes


def _load_lesson(folder: Path, course: str, before: Mapping[Path, Reading]) -> dict[Path, Reading]:
    path = folder / "lesson.md"
    english = _load_file(path, course, DEFAULT, before.get(path), None)
    readings = {path: english}
    for other in sorted(folder.glob("lesson.*.md")):
        language = other.name.split(".")[1]
        if language not in CODES or language == DEFAULT:
            text = f"unknown language '{language}' in the file's name; use {', '.join(CODES[1:])}"
            readings[other] = Reading("", None, None, None, (Mistake(other, 1, text, blocks=False),))
        elif english.document is not None:
            reading = _load_file(other, course, language, before.get(other), english.document)
            readings[other] = reading if english.lesson else _kept(reading, before.get(other))
        elif other in before:
            readings[other] = before[other]
    return readings


def _kept(reading: Reading, before: Reading | None) -> Reading:
    """While the English lesson has a mistake, its translation stays as it was."""
    return replace(reading, digest="", shown=before.shown if before else None)


def _load_file(path: Path, course: str, language: str, before: Reading | None, english: Document | None) -> Reading:
    shown = before.shown if before else None
    try:
        source = decode(path.read_bytes())
    except FileNotFoundError:
        fault = Fault(1, "the file is missing; write it, or take the lesson out of course.toml")
        return Reading("", None, None, shown, _faulty(path, fault))
    except OSError as e:
        return Reading("", None, None, shown, _faulty(path, Fault(1, f"the file cannot be read: {e.strerror}")))
    except NotText as e:
        return Reading("", None, None, shown, _faulty(path, e.fault))
    name = f"{course}/{path.parent.name}/{path.name}"
    digest = digest_of(name, source, english.source if english else "", *_drawings_beside(path))
    if before is not None and before.digest == digest:
        return before
    try:
        return _read_file(path, course, language, source, digest, shown, english)
    except Exception:  # one lesson's trouble must not take the others down
        log.exception("lesson_reader_failed", path=str(path))
        fault = Fault(1, "Lockstep failed on this file; its log has the traceback; please report it")
        return Reading("", None, None, shown, _faulty(path, fault))


def _drawings_beside(path: Path) -> Iterator[str]:
    """What the page may hold besides the file itself: names and times of its SVGs."""
    for file in sorted(path.parent.glob("assets/**/*.svg")):
        with suppress(OSError):
            yield f"{file.name} {file.stat().st_mtime_ns} {file.stat().st_size}"


def _read_file(
    path: Path, course: str, language: str, source: str, digest: str, shown: Lesson | None, english: Document | None
) -> Reading:
    document = read(source, language, english)
    mistakes = tuple(_mistakes(path, document.faults))
    if any(mistake.blocks for mistake in mistakes):
        return Reading(digest, document, None, shown, mistakes)
    lesson = render(document, course=course, slug=path.parent.name, languages=(language,), path=path, digest=digest)
    return Reading(digest, document, lesson, lesson, mistakes)


def _mistakes(path: Path, faults: list[Fault] | tuple[Fault, ...]) -> list[Mistake]:
    return [Mistake(path, fault.line, fault.text, fault.blocks) for fault in faults]


def _faulty(path: Path, fault: Fault) -> tuple[Mistake, ...]:
    return tuple(_mistakes(path, [fault]))


# --- between files ---------------------------------------------------------------------------------------------


def _assemble(
    root: Path, course: CourseSource, readings: Mapping[Path, Reading]
) -> Iterator[tuple[Key, dict[str, Lesson]]]:
    slugs = course.lessons
    for number, slug in enumerate(slugs, 1):
        shown = {}
        for language in CODES:
            reading = readings.get(_path(root, course.slug, slug, language))
            if reading is not None and reading.shown is not None:
                shown[language] = reading.shown
        languages = tuple(shown)
        yield (
            (course.slug, slug),
            {
                language: replace(lesson, languages=languages, number=number, total=len(slugs))
                for language, lesson in shown.items()
            },
        )


def _path(root: Path, course: str, slug: str, language: str) -> Path:
    return root / course / slug / ("lesson.md" if language == DEFAULT else f"lesson.{language}.md")


def _broken(
    root: Path,
    path: Path,
    reading: Reading,
    readings: Mapping[Path, Reading],
    courses: Mapping[str, CourseSource],
) -> Iterator[Mistake]:
    """Yield the links and pictures of a file that lead nowhere. They never block: their cause may be another file."""
    if reading.document is None:
        return
    course, language = path.parent.parent.name, reading.document.language
    for reference in reading.document.survey.references:
        problem = _why_broken(root, path, course, language, reference, readings, courses)
        if problem:
            yield Mistake(path, reference.line, problem, blocks=False)


def _why_broken(
    root: Path,
    path: Path,
    course: str,
    language: str,
    reference: Reference,
    readings: Mapping[Path, Reading],
    courses: Mapping[str, CourseSource],
) -> str | None:
    target = reference.target
    if target.kind == "outside":
        return None
    if target.kind == "asset":
        return _why_no_picture(path.parent / target.name, target.name)
    there = target.course or course
    slug = target.name or path.parent.name
    if there not in courses or slug not in courses[there].lessons:
        known = ", ".join(courses[there].lessons) if there in courses else ", ".join(courses)
        return f"there is no lesson '{there}/{slug}'; use one of {known}"
    other = readings.get(_path(root, there, slug, language)) or readings.get(_path(root, there, slug, DEFAULT))
    if target.fragment and other is not None and other.document is not None:
        ids = other.document.survey.ids | {f"cell-{cell.name}" for cell in other.document.cells}
        if target.fragment not in ids:
            return f"'{slug}' has no heading #{target.fragment[:60]}; use one of {', '.join(sorted(ids)) or 'none'}"
    return None


def _why_no_picture(file: Path, name: str) -> str | None:
    if not file.is_file():
        return f"there is no file {name}; add it, or correct it"
    try:
        drawing_at(file, "")
    except UnfitDrawing as e:
        return f"the drawing {name} cannot be part of the page: {e}"
    return None


def _outline_digest(courses: Mapping[str, CourseSource], lessons: Mapping[Key, Mapping[str, Lesson]]) -> str:
    shown = [
        f"{key}{language}{lesson.digest}{lesson.languages}{lesson.number}{lesson.total}"
        for key, by_language in sorted(lessons.items())
        for language, lesson in sorted(by_language.items())
    ]
    return digest_of(repr(sorted(courses.items())), *shown)
