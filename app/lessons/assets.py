"""The files beside a lesson, such as its pictures: found without ever leaving the lesson's folder."""

from __future__ import annotations

import hashlib
import mimetypes
from dataclasses import dataclass

from app.lessons.errors import AssetUnknown
from app.lessons.links import StrangeLink, read_link
from app.lessons.model import Lesson

MOST_ASSET_BYTES = 20_000_000
_SHOWN = ("image/", "audio/", "video/", "font/", "text/plain", "text/csv", "application/json", "application/pdf")


@dataclass(frozen=True, slots=True)
class Asset:
    """A file as it is sent."""

    body: bytes
    media_type: str
    etag: str


def read_asset(lesson: Lesson, name: str) -> Asset:
    """Read ``assets/…`` of a lesson.

    Raises:
        AssetUnknown: there is no such file, or the name is not one a lesson could link to.
    """
    path = f"assets/{name}"
    try:
        target = read_link(path)
    except StrangeLink:
        raise AssetUnknown(name=path[:80]) from None
    folder = (lesson.source_path.parent / "assets").resolve()
    file = lesson.source_path.parent / target.name
    if target.kind != "asset" or target.name != path or not file.resolve().is_relative_to(folder):
        raise AssetUnknown(name=path[:80])
    try:
        if not file.is_file() or file.stat().st_size > MOST_ASSET_BYTES:
            raise AssetUnknown(name=path[:80])
        body = file.read_bytes()
    except OSError:
        raise AssetUnknown(name=path[:80]) from None
    media_type = mimetypes.guess_type(file.name)[0] or ""
    if not media_type.startswith(_SHOWN):
        media_type = "application/octet-stream"
    return Asset(body, media_type, f'"{hashlib.sha256(body).hexdigest()[:16]}"')
