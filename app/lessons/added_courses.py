"""Where a course comes from that ``lockstep course add`` has copied: each copy says so itself, in a file beside it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter

from app.lessons.front_matter import MAX_SLUG_LENGTH, SLUG_PATTERN

SOURCE_FILE = "source.json"
"""Beside the folder of the course."""
_Line = Annotated[str, Field(max_length=2_000, pattern=r"^[^\x00-\x1f\x7f]*$")]


@dataclass(frozen=True, slots=True)
class AddedCourse:
    """A course that is kept elsewhere."""

    slug: Annotated[str, Field(max_length=MAX_SLUG_LENGTH, pattern=f"^(?:{SLUG_PATTERN.pattern})$")]
    url: _Line
    revision: _Line
    """The branch, tag or commit that was asked for; empty for the default branch."""
    folder: _Line
    """The course's folder in the repository; ``.`` is the repository itself."""
    commit: Annotated[str, Field(pattern="^[0-9a-f]{40,64}$")]


_SCHEMA = TypeAdapter(AddedCourse)


def parse_source(data: bytes) -> AddedCourse:
    """Read the file about a course.

    Raises:
        ValueError: it is not one.
    """
    return _SCHEMA.validate_json(data, strict=True)


def format_source(course: AddedCourse) -> bytes:
    """The file about a course."""
    return _SCHEMA.dump_json(course, indent=2)


def read_source(link: Path) -> AddedCourse | None:
    """Where the course comes from that a link in the folder of added courses leads to; None if that is unknown."""
    if not link.is_symlink():
        return None
    try:
        course = parse_source((link.resolve().parent / SOURCE_FILE).read_bytes())
    except (OSError, ValueError):
        return None
    return course if course.slug == link.name else None
