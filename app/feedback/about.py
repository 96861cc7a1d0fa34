"""What feedback is about: a page of this site, its lesson, and a cell of it. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from app.lessons.catalog import CatalogView
from app.lessons.errors import CourseUnknown, LessonUnknown
from app.lessons.model import Lesson
from app.web.form import own_path
from app.web.languages import in_path

_MOST = 300
_LESSON = re.compile(r"/[^/]+/courses/([^/.]+)/([^/.]+)(?:/.*)?")
_SECRET = re.compile(r"/[^/]+/(?:mail|unsubscribe)/.*")
"""Links of mails: who knows such an address may use it."""


@dataclass(frozen=True, slots=True)
class About:
    """A page, its lesson if it is one's, and the name of one of its cells."""

    page: str = ""
    lesson: Lesson | None = None
    cell: str = ""

    @property
    def key(self) -> str:
        """``course/slug``, or nothing."""
        return self.lesson.key if self.lesson else ""


def about(catalog: CatalogView, page: str, cell: str, lang: str) -> About:
    """What a page and a cell that a browser names are. What is unknown, secret or elsewhere is left out."""
    path = urlsplit(own_path(page) or "").path
    if not in_path(path) or len(path) > _MOST or _SECRET.fullmatch(path):
        return About()
    if (named := _LESSON.fullmatch(path)) is None:
        return About(path)
    try:
        lesson = catalog.lesson(named[1], named[2], lang)
    except (CourseUnknown, LessonUnknown):
        return About(path)
    return About(path, lesson, cell if lesson.cell(cell) else "")
