"""A copy on disk of the last good version of each course: a mistake hides nothing, even if the server restarts.

The copy has the form of the folder of courses. A lesson's folder is copied as a whole once none of its files has an
error that blocks, and a ``course.toml`` once it is correct and every lesson in it exists. Only ordinary files are
copied, never what a link points to. Several web processes may share the copy: each replaces a folder in one step.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import structlog

from app.lessons.document import LessonDecodeError, decode_source
from app.lessons.snapshot import LoadedFile, Snapshot, load_snapshot

_log = structlog.get_logger(__name__)

MAX_LESSON_BYTES = 200_000_000
"""A lesson with more is not copied: the copy must not fill the disk."""

FileStamps = Mapping[str, tuple[int, int]]
"""Size and time of each file, by its path in its folder."""


class LastGoodCourses:
    """The copy below ``folder``, of the courses below ``root``."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._root = root
        self._folder = folder
        self._failed = False

    def behind(self, read: Snapshot) -> Snapshot:
        """What to take for the previous snapshot of ``read``, which was the first: its good files, else the copies."""
        if not self._folder.is_dir():
            return read
        kept = load_snapshot(self._folder, Snapshot())
        files = {
            self._root / path.relative_to(self._folder): replace(file, digest="", lesson=None, mistakes=())
            for path, file in kept.readings.items()
            if file.shown is not None
        }
        good = {path: file for path, file in read.readings.items() if file.lesson is not None}
        return Snapshot(courses={**read.courses, **kept.courses}, readings={**files, **good})

    def keep(self, read: Snapshot) -> None:
        """Copy what is new and good. Logs if that is not possible: the pages do not depend on it."""
        try:
            for course in read.courses.values():
                for slug in course.lessons:
                    with suppress(FileNotFoundError):  # an editor is saving it: the next reload comes soon
                        self._keep_lesson(f"{course.slug}/{slug}", read.readings)
                with suppress(FileNotFoundError):
                    self._keep_course(course.slug, set(course.lessons), read)
            self._failed = False
        except OSError as e:
            if not self._failed:
                _log.warning("last_good_courses_not_kept", folder=str(self._folder), error=str(e))
            self._failed = True

    def _keep_lesson(self, key: str, readings: Mapping[Path, LoadedFile]) -> None:
        source, kept = self._root / key, self._folder / key
        files = {path: file for path, file in readings.items() if path.parent == source}
        if any(mistake.blocks for file in files.values() for mistake in file.mistakes):
            return
        texts = {path.name: file.document.source for path, file in files.items() if file.document is not None}
        stamps = _stamps(source)
        if "lesson.md" not in texts or stamps == _stamps(kept) or sum(n for n, _ in stamps.values()) > MAX_LESSON_BYTES:
            return
        draft = kept.with_name(f".{kept.name}.{os.getpid()}")
        shutil.rmtree(draft, ignore_errors=True)
        for name in stamps:
            (draft / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / name, draft / name, follow_symlinks=False)
        if all(_text(draft / name) == text for name, text in texts.items()):  # else it has changed in the meantime
            _put_in_place(draft, kept)
        shutil.rmtree(draft, ignore_errors=True)

    def _keep_course(self, slug: str, lessons: set[str], read: Snapshot) -> None:
        source, kept = self._root / slug / "course.toml", self._folder / slug / "course.toml"
        if any(mistake.path == source and mistake.blocks for mistake in read.mistakes):
            return
        content = source.read_bytes()
        if not all((kept.parent / lesson / "lesson.md").is_file() for lesson in lessons):
            return
        if kept.is_file() and kept.read_bytes() == content:
            return
        draft = kept.with_name(f".course.{os.getpid()}")
        draft.write_bytes(content)
        draft.replace(kept)
        for child in kept.parent.iterdir():
            if child.is_dir() and child.name not in lessons and not child.name.startswith("."):
                shutil.rmtree(child, ignore_errors=True)


def _stamps(folder: Path) -> FileStamps:
    return {str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime_ns) for path in _files(folder)}


def _files(folder: Path) -> Iterator[Path]:
    """The ordinary files below the folder, without those of editors and caches."""
    for at, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__")))
        for name in sorted(names):
            path = Path(at) / name
            if not name.startswith((".", "#")) and path.is_file() and not path.is_symlink():
                yield path


def _text(path: Path) -> str | None:
    try:
        return decode_source(path.read_bytes())
    except (OSError, LessonDecodeError):
        return None


def _put_in_place(draft: Path, kept: Path) -> None:
    """Replace a folder. If another process does the same at the same time, one of the two wins."""
    old = kept.with_name(f".{kept.name}.{os.getpid()}.old")
    shutil.rmtree(old, ignore_errors=True)
    with suppress(OSError):
        if kept.is_dir():
            kept.rename(old)
        draft.rename(kept)
    shutil.rmtree(old, ignore_errors=True)
