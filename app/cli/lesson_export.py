"""``lockstep lesson export``: a lesson as a file for elsewhere, or a course as an archive of such files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from app.cli.console import USAGE_ERROR, fail, print_message, read_settings
from app.exports.chromium import BrowserUnavailable, find_browser
from app.exports.files import CourseArchive, ExportFormat, file_name, lesson_file, solution_runs
from app.i18n import LANGUAGE_CODES
from app.lessons.catalog import Catalog
from app.lessons.model import Lesson
from app.settings import Settings


def export_lessons(
    name: Annotated[str, typer.Argument(metavar="LESSON|COURSE", help="A lesson, also as COURSE/LESSON, or a course.")],
    form: Annotated[
        Literal["ipynb", "html", "slides", "pdf", "py", "markdown"],
        typer.Option("--format", help="The format. A PDF needs Chromium or Chrome."),
    ] = "ipynb",
    into: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the file is written.")] = Path(),
    language: Annotated[str, typer.Option(help=f"The language: {', '.join(LANGUAGE_CODES)}.")] = LANGUAGE_CODES[0],
    solutions: Annotated[bool, typer.Option("--solutions", help="Fill in the solutions of exercises.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
) -> None:
    """Write a lesson as a notebook, an HTML page, slides, a PDF, a Python script or Markdown.

    A course becomes a zip of its lessons. Drafts are included.
    """
    settings = read_settings()
    if language not in LANGUAGE_CODES:
        fail(f"There is no language '{language}'. Use {', '.join(LANGUAGE_CODES)}.", USAGE_ERROR)
    catalog = Catalog(settings.lessons_dir, added=settings.added_courses_dir, quiet=True)
    catalog.reload()
    lessons, is_course = _select(catalog, name, language)
    stem = lessons[0].course if is_course else lessons[0].slug
    target = into / (f"{stem}.zip" if is_course else file_name(stem, form))
    if target.exists() and not force:
        fail(f"{target} exists. Choose another folder with --into, or replace it with --force.")
    make = partial(_file, form, settings, solutions, is_course)
    try:
        content = _archive(form, lessons, make) if is_course else make(lessons[0])
        write_file(target, content)
    except BrowserUnavailable as e:
        fail(f"{e}.")
    except OSError as e:
        fail(f"{target} cannot be written: {e.strerror}.")
    typer.echo(str(target))


def _select(catalog: Catalog, name: str, language: str) -> tuple[list[Lesson], bool]:
    """The lessons with this name, and whether it is a course's."""
    view = catalog.with_drafts
    if name in view.snapshot.courses:
        lessons = [entry.lesson for entry in view.outline(name, language).lessons if entry.lesson is not None]
        if lessons:
            return lessons, True
    keys = [lesson.key for lesson in view.every() if name in (lesson.slug, lesson.key)]
    found = view.find_lesson(keys[0], language) if keys else None
    if found is None:
        known = ", ".join(dict.fromkeys([*view.snapshot.courses, *(lesson.key for lesson in view.every())]))
        fail(f"There is no lesson and no course '{name}'. There are: {known}.", USAGE_ERROR)
    return [found], False


def _archive(form: ExportFormat, lessons: Sequence[Lesson], make: Callable[[Lesson], bytes]) -> bytes:
    archive = CourseArchive(form)
    for lesson in lessons:
        archive.add(lesson, make(lesson))
    return archive.finish()


def _file(form: ExportFormat, settings: Settings, solutions: bool, is_course: bool, lesson: Lesson) -> bytes:
    if is_course:
        print_message(f"{lesson.number} of {lesson.total}: {lesson.slug}")
    page = f"{settings.known_url or 'http://127.0.0.1:8000'}/{lesson.language}/courses/{lesson.key}"
    runs = solution_runs(lesson) if solutions else {}
    return lesson_file(form, lesson, page, runs, {}, browser=find_browser(), trusted=True)


def write_file(target: Path, content: bytes) -> None:
    """Write the file at once or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
    draft = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        draft.chmod(0o644)
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
