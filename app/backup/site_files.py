"""The files of a site that a backup holds beside the database: the secrets, the lessons, and the added courses."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from app.backup.archive import BackupError
from app.imports.course_store import CourseStore
from app.lessons.added_courses import SOURCE_FILE, AddedCourse

DRAFT_PREFIX = ".restore-"
_SECRETS_BEFORE = "secrets before"
"""How the names of folders begin that a restore needs until it ends."""
_NOT_LESSONS = {".git", "__pycache__", ".ipynb_checkpoints"}


def secret_files(data_dir: Path) -> Iterator[tuple[str, bytes]]:
    """The name in a backup and the content of each secret."""
    with suppress(FileNotFoundError):
        for file in sorted((data_dir / "secrets").iterdir()):
            if file.is_file() and not file.name.startswith("."):
                yield f"secrets/{file.name}", file.read_bytes()


@dataclass(frozen=True, slots=True)
class RestoredCourse:
    """What became of an added course of a backup."""

    course: AddedCourse
    replaced: AddedCourse | None = None
    """What was served under its name before."""
    failure: str = ""
    """Why it could not be written; empty if it is served."""


def lesson_files(lessons_dir: Path) -> Iterator[tuple[str, Path]]:
    """The name in a backup and the path of each file of the lessons. Links are left out."""
    for path in _files(lessons_dir):
        yield f"lessons/{path.relative_to(lessons_dir).as_posix()}", path


def course_files(course: AddedCourse, copy: Path) -> Iterator[tuple[str, Path]]:
    """The name in a backup and the path of each file of an added course."""
    yield f"courses/{course.slug}/{SOURCE_FILE}", copy / SOURCE_FILE
    for path in _files(copy / course.slug):
        yield f"courses/{course.slug}/{path.relative_to(copy).as_posix()}", path


def _files(root: Path) -> Iterator[Path]:
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = sorted(set(subfolders) - _NOT_LESSONS)
        for name in sorted(names):
            path = Path(folder, name)
            if path.is_file() and not path.is_symlink():
                yield path


@contextmanager
def alone_in(data_dir: Path) -> Iterator[None]:
    """Keep other restores out of a folder, and delete what one that was killed has left there.

    Raises:
        BackupError: another one is running.
    """
    folder = os.open(data_dir, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for left in data_dir.glob(f"{DRAFT_PREFIX}*"):
            if (secrets := left / _SECRETS_BEFORE).exists():  # it was killed after it had replaced them
                secrets.rename(data_dir / f"secrets-before-restore-{left.name.removeprefix(DRAFT_PREFIX)}")
            shutil.rmtree(left)
        yield
    except BlockingIOError:
        raise BackupError(f"Another restore is running in {data_dir}. Wait for it.") from None
    finally:
        os.close(folder)


class RestoredFiles:
    """The files of a backup: first beside their places, then in them.

    If the block fails before ``keep_secrets``, the secrets are again what they were.
    """

    def __init__(self, data_dir: Path) -> None:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._secrets = data_dir / "secrets"
        self._draft = Path(tempfile.mkdtemp(prefix=DRAFT_PREFIX, dir=data_dir))
        self._before = self._draft / _SECRETS_BEFORE

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if error is not None and self._before.exists():
            shutil.rmtree(self._secrets, ignore_errors=True)
            self._before.replace(self._secrets)
        shutil.rmtree(self._draft)

    @property
    def lessons(self) -> Path:
        """The folder of the lessons, which may not exist."""
        return self._draft / "lessons"

    def add(self, name: str, data: bytes) -> None:
        """Write a file. The name is one that ``ArchiveReader`` has checked."""
        file = self._draft / name
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("xb") as new:
            new.write(data)

    def put_secrets_in_place(self) -> None:
        """Replace the secrets, if the backup has any."""
        drafts = self._draft / "secrets"
        if not drafts.exists():
            return
        if self._secrets.exists():
            self._secrets.rename(self._before)
        else:
            self._before.mkdir(mode=0o700)
        drafts.chmod(0o700)
        drafts.rename(self._secrets)
        for file in self._secrets.iterdir():
            file.chmod(0o600)

    def keep_secrets(self) -> None:
        """Delete the secrets from before."""
        shutil.rmtree(self._before, ignore_errors=True)

    def put_lessons_in_place(self, lessons_dir: Path, spare: Path) -> Path | None:
        """Put the lessons into their folder if that is missing or empty, else into ``spare``.

        Returns:
            where they are now, or None if their folder has all of them already.
        """
        if not self.lessons.exists() or _has_all(lessons_dir, self.lessons):
            return None
        _let_others_read(self.lessons)
        with suppress(OSError):
            if not lessons_dir.exists() or not any(lessons_dir.iterdir()):
                _copy_all(self.lessons, lessons_dir)
                return lessons_dir
        self.lessons.rename(spare)
        return spare

    def put_courses_in_place(self, store: CourseStore, courses: Iterable[AddedCourse]) -> Iterator[RestoredCourse]:
        """Serve the added courses of the backup, each at its commit. Other courses stay."""
        served = {course.slug: course for course in store.courses()}
        for course in courses:
            before = served.get(course.slug)
            if before == course:
                continue
            copy = self._draft / "courses" / course.slug
            try:
                _let_others_read(copy)
                store.put(course, copy)
                yield RestoredCourse(course, before)
            except OSError as e:
                yield RestoredCourse(course, before, e.strerror or str(e))


def _let_others_read(folder: Path) -> None:
    """The runner and the web application may be other users."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def _copy_all(source: Path, target: Path) -> None:
    """Copy a folder into one that is missing or empty, and leave that empty if it fails."""
    try:
        shutil.copytree(source, target, dirs_exist_ok=True)
    except OSError:
        for entry in target.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        raise


def _has_all(folder: Path, wanted: Path) -> bool:
    """Whether a folder has all files of another, with the same content."""
    try:
        return all(
            (folder / name.removeprefix("lessons/")).read_bytes() == file.read_bytes()
            for name, file in lesson_files(wanted)
        )
    except OSError:
        return False
