"""What feedback is about: a page of this site, its lesson, and a cell of it. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from app.lessons.catalog import CatalogView
from app.lessons.errors import CourseNotFound, LessonNotFound
from app.lessons.model import Lesson
from app.web.forms import local_path
from app.web.languages import language_in_path

_MAX_PATH_LENGTH = 300
_LESSON_PATH = re.compile(r"/[^/]+/courses/([^/.]+)/([^/.]+)(?:/.*)?")
_SECRET_LINK_PATH = re.compile(r"/[^/]+/(?:mail|unsubscribe)/.*")
"""Links of mails: who knows such an address may use it."""


@dataclass(frozen=True, slots=True)
class FeedbackContext:
    """A page, its lesson if it is one's, and the name of one of its cells."""

    page: str = ""
    lesson: Lesson | None = None
    cell: str = ""

    @property
    def key(self) -> str:
        """``course/slug``, or nothing."""
        return self.lesson.key if self.lesson else ""


def resolve_context(catalog: CatalogView, page: str, cell: str, lang: str) -> FeedbackContext:
    """What a page and a cell that a browser names are. What is unknown, secret or elsewhere is left out."""
    path = urlsplit(local_path(page) or "").path
    if not language_in_path(path) or len(path) > _MAX_PATH_LENGTH or _SECRET_LINK_PATH.fullmatch(path):
        return FeedbackContext()
    if (named := _LESSON_PATH.fullmatch(path)) is None:
        return FeedbackContext(path)
    try:
        lesson = catalog.lesson(named[1], named[2], lang)
    except (CourseNotFound, LessonNotFound):
        return FeedbackContext(path)
    return FeedbackContext(path, lesson, cell if lesson.cell(cell) else "")
