"""What other pages show of the catalog: links in the top bar, outlines on error pages, and errors in lesson files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from app import i18n
from app.errors import LockstepError
from app.lessons.catalog import CatalogView
from app.lessons.dependencies import request_catalog
from app.lessons.errors import CourseNotFound, LessonNotFound, LessonUnavailable
from app.web.rendering import NavItem


@dataclass(frozen=True, slots=True)
class ShownMistake:
    """An error in a file, as a page shows it. If ``blocks``, learners see the last good version of the file."""

    place: str
    """The file, below the folder of courses, and its line."""
    text: str
    """Marked if it is only a warning."""
    blocks: bool


def course_links(request: Request) -> list[NavItem]:
    lang = i18n.current_language()
    path = request.url.path
    addresses = [
        (course.title, str(request.app.url_path_for("course", lang=lang, course=course.slug)))
        for course in request_catalog(request).courses(lang)
    ]
    return [NavItem(title, url, path == url or path.startswith(f"{url}/")) for title, url in addresses]


def course_outlines(request: Request, error: LockstepError) -> Mapping[str, Any]:
    catalog = request_catalog(request)
    lang = i18n.current_language()
    mistakes: list[ShownMistake] = []
    if isinstance(error, LessonUnavailable):
        mistakes = format_mistakes(catalog, str(error.values["course"]), str(error.values["slug"]))
    elif isinstance(error, CourseNotFound | LessonNotFound):
        mistakes = format_mistakes(catalog)  # one of them may be why it does not exist
    return {
        "courses": [catalog.outline(course.slug, lang) for course in catalog.courses(lang)],
        "mistakes": mistakes,
    }


def format_mistakes(catalog: CatalogView, course: str = "", slug: str = "") -> list[ShownMistake]:
    """The errors in the files of a lesson, of a course or of all courses, as pages show them to instructors."""
    return [
        ShownMistake(f"{one.path.relative_to(catalog.root_of(one.path))}:{one.line}", one.message, one.blocks)
        for one in catalog.mistakes(course, slug)
    ]
