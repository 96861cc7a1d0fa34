"""The files of a lesson, such as pictures, and covers; only those inside their folders can be read."""

from __future__ import annotations

import hashlib
import mimetypes
import os
from dataclasses import dataclass
from pathlib import Path

from app.lessons.errors import AssetNotFound
from app.lessons.links import InvalidLink, parse_link
from app.lessons.model import Course, Lesson
from app.web.assets import with_charset

MAX_ASSET_BYTES = 20_000_000
_INLINE_MEDIA_TYPES = (
    "image/",
    "audio/",
    "video/",
    "font/",
    "text/plain",
    "text/csv",
    "application/json",
    "application/pdf",
)


@dataclass(frozen=True, slots=True)
class LessonAsset:
    """A file as it is sent."""

    body: bytes
    media_type: str
    etag: str


def read_asset(lesson: Lesson, name: str) -> LessonAsset:
    """Read ``assets/…`` of a lesson.

    Raises:
        AssetNotFound: the file does not exist, or a lesson could not link to this name.
    """
    path = f"assets/{name}"
    try:
        target = parse_link(path)
    except InvalidLink:
        raise AssetNotFound(name=path[:80]) from None
    folder = (lesson.source_path.parent / "assets").resolve()
    file = lesson.source_path.parent / target.name
    if target.kind != "asset" or target.name != path or not file.resolve().is_relative_to(folder):
        raise AssetNotFound(name=path[:80])
    body = _read(file, path)
    media_type = mimetypes.guess_type(file.name)[0] or ""
    if not media_type.startswith(_INLINE_MEDIA_TYPES):
        media_type = "application/octet-stream"
    return LessonAsset(body, with_charset(media_type), _etag(body))


def cover_path(source: Path) -> Path:
    """Where the cover of a lesson's file is: ``cover.png`` for ``lesson.md``, ``cover.ko.png`` for ``lesson.ko.md``."""
    return source.with_name(f"cover{source.name.removeprefix('lesson').removesuffix('.md')}.png")


def find_cover(path: Path) -> Path | None:
    """The path of a cover, if there is one that can be read."""
    is_file = os.path.isfile(path)  # noqa: PTH113 - Path.is_file raises if the folder cannot be read
    return path if is_file and os.access(path, os.R_OK) else None


def read_cover(covered: Course | Lesson) -> LessonAsset:
    """Read the picture for links to a course or a lesson. Raises AssetNotFound."""
    if covered.cover is None:
        raise AssetNotFound(name="cover.png")
    body = _read(covered.cover, covered.cover.name)
    return LessonAsset(body, "image/png", _etag(body))


def _read(file: Path, name: str) -> bytes:
    try:
        if not file.is_file() or file.stat().st_size > MAX_ASSET_BYTES:
            raise AssetNotFound(name=name[:80])
        return file.read_bytes()
    except OSError:
        raise AssetNotFound(name=name[:80]) from None


def _etag(body: bytes) -> str:
    return f'"{hashlib.sha256(body).hexdigest()[:16]}"'
