"""The subject of feedback: a page of this site, its lesson, and a cell. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from app.lessons.catalog import CatalogView
from app.lessons.model import Lesson
from app.observability import redact_path
from app.web.forms import local_path
from app.web.languages import language_in_path

_MAX_PATH_LENGTH = 300
_LESSON_PATH = re.compile(r"/[^/]+/courses/([^/.]+)/([^/.]+)(?:/.*)?")


@dataclass(frozen=True, slots=True)
class FeedbackContext:
    """A page, its lesson if it belongs to one, and the name of a cell."""

    page: str = ""
    lesson: Lesson | None = None
    cell: str = ""

    @property
    def key(self) -> str:
        """``course/slug``, or an empty string."""
        return self.lesson.key if self.lesson else ""


def resolve_context(catalog: CatalogView, page: str, cell: str, lang: str) -> FeedbackContext:
    """The context for the page and cell that a browser names. Unknown, secret and external ones are left out."""
    path = urlsplit(local_path(page) or "").path
    if not language_in_path(path) or len(path) > _MAX_PATH_LENGTH or redact_path(path) != path:
        return FeedbackContext()
    if (named := _LESSON_PATH.fullmatch(path)) is None:
        return FeedbackContext(path)
    lesson = catalog.find_lesson(f"{named[1]}/{named[2]}", lang)
    named_cell = lesson.cell(cell) if lesson else None
    return FeedbackContext(path, lesson, named_cell.name if named_cell else "")
