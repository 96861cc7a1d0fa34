"""Files that a lesson shows as part of its text: code, tables, Markdown, and bibliographies of its own folder.

Only what lies in the folder, beneath it, and not what learners must not see: checks, wrong answers, other versions of
the lesson, and hidden files.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

MAX_INCLUDED_BYTES = 200_000
MAX_STAMPED_FILES = 1_000
_MEDIA = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif", ".mp4", ".webm", ".mp3", ".npz", ".pdf"})


class UnreadableInclude(Exception):
    """The file cannot be shown. ``str()`` is the end of the message, after the file's name."""


def read_included_file(folder: Path | None, name: str) -> str:
    """The text of a file in the lesson's folder.

    Raises:
        UnreadableInclude: it does not exist, is not text, is too large, or must not be shown.
    """
    if folder is None or not name or "\x00" in name:
        raise UnreadableInclude("does not exist; add it to the lesson's folder, or correct the path")
    try:
        root = folder.resolve()
        file = (root / name.lstrip("/")).resolve()
        if not file.is_relative_to(root) or _is_secret(file.relative_to(root)):
            raise UnreadableInclude("cannot be shown; name a file in the lesson's folder that learners may see")
        if not file.is_file():
            raise UnreadableInclude("does not exist; add it to the lesson's folder, or correct the path")
        if file.stat().st_size > MAX_INCLUDED_BYTES:
            raise UnreadableInclude(f"is too large; include at most {MAX_INCLUDED_BYTES:,} bytes")
        return file.read_text(encoding="utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except (UnicodeDecodeError, ValueError):
        raise UnreadableInclude("is not text in UTF-8; save it as UTF-8") from None
    except (OSError, RuntimeError) as e:
        raise UnreadableInclude(f"cannot be read: {getattr(e, 'strerror', None) or 'too many links'}") from None


def bibliography_files(folder: Path | None) -> list[str]:
    """The names of the ``.bib`` files in the lesson's folder and its ``assets``."""
    if folder is None:
        return []
    with suppress(OSError):
        found = [*folder.glob("*.bib"), *folder.glob("assets/*.bib")]
        return sorted(path.relative_to(folder).as_posix() for path in found)
    return []


def included_file_stamps(folder: Path) -> Iterator[str]:
    """Names, times, and sizes of the files that a lesson may include: they change when its page has to."""
    number = 0
    with suppress(OSError):
        for file in sorted(folder.rglob("*")):
            name = file.relative_to(folder)
            if number >= MAX_STAMPED_FILES:
                return
            if file.suffix.lower() in {*_MEDIA, ".svg"} or _is_secret(name) or not file.is_file():
                continue
            number += 1
            yield f"{name.as_posix()} {file.stat().st_mtime_ns} {file.stat().st_size}"


def _is_secret(name: Path) -> bool:
    first = name.parts[0].casefold() if name.parts else ""
    if any(part.startswith((".", "#")) for part in name.parts):
        return True
    if first in ("wrong", "__pycache__"):
        return True
    return len(name.parts) == 1 and (
        first.startswith("checks.") or (first.startswith("lesson.") and first.endswith("md"))
    )
