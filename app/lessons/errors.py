"""Errors in lesson files (values, for the author) and failed requests (exceptions, for the reader)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from app.errors import NotFound, ServiceUnavailable
from app.i18n import N_


@dataclass(frozen=True, slots=True, order=True)
class LessonFileError:
    """An error in a lesson's file: what is wrong and what to write instead. ``str()`` is ``file:line: text``.

    If ``blocks`` is true, the new version of the file is not shown; other errors, such as broken links, are only
    reported. A ``warning`` says what the page shows in place of something that it cannot show.
    """

    path: Path
    line: int
    text: str
    blocks: bool = True
    warning: bool = False

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"

    @property
    def message(self) -> str:
        """The text, marked if it is only a warning."""
        return f"warning: {self.text}" if self.warning else self.text


class CourseNotFound(NotFound):
    """The course does not exist."""

    message = N_("There is no course “{course}”.")


class LessonNotFound(NotFound):
    """The course has no lesson with this name."""

    message = N_("There is no lesson “{slug}” in this course.")


class LessonMoved(Exception):
    """The lesson of the course has another slug now. Answered with a redirect, before a route does anything."""

    def __init__(self, course: str, former: str, slug: str) -> None:
        super().__init__(f"{course}/{former} is {course}/{slug} now")
        self.course = course
        self.former = former
        self.slug = slug


class AssetNotFound(NotFound):
    """The lesson has no such file."""

    message = N_("The lesson has no file “{name}”.")


class LessonUnavailable(ServiceUnavailable):
    """The lesson exists, but its file has had an error since it was first read."""

    message = N_("The lesson “{slug}” is not available: its file has an error that its author has to fix first.")
