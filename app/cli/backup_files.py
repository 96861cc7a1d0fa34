"""The files that ``lockstep backup`` writes and ``lockstep restore`` reads: their names, and how they come to be."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from app.backup.archive import BackupError

STREAM = "-"
"""In the place of a file: standard output or standard input."""
_NAME = re.compile(r"lockstep-(\d{8}T\d{6}Z)\.tar\.gz")
_TIME = "%Y%m%dT%H%M%SZ"


def dated_name(at: datetime) -> str:
    """The name of a backup in a folder of backups."""
    return f"lockstep-{at:{_TIME}}.tar.gz"


def dated_backups(folder: Path) -> list[tuple[datetime, Path]]:
    """The backups in a folder that have such names, the newest first."""
    found: list[tuple[datetime, Path]] = []
    for file in folder.iterdir():
        if (match := _NAME.fullmatch(file.name)) and file.is_file() and not file.is_symlink():
            with suppress(ValueError):  # there is no such day
                found.append((datetime.strptime(match[1], _TIME).replace(tzinfo=UTC), file))
    return sorted(found, reverse=True)


def delete_old_backups(folder: Path, keep: int) -> list[Path]:
    """Delete all but the newest backups with such names. Returns the deleted ones."""
    old = [file for _, file in dated_backups(folder)[keep:]]
    for file in old:
        file.unlink()
    return old


def delete_partial_backups(folder: Path) -> None:
    """Delete what commands that were killed have left in a folder of backups."""
    for file in folder.glob(".lockstep-*.tar.gz.partial"):
        with suppress(OSError), file.open("rb") as partial:
            fcntl.flock(partial, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails if a command is still writing it
            file.unlink()


@contextmanager
def new_file(path: Path) -> Iterator[IO[bytes]]:
    """A file that is at the path only when the block has ended without an error. Only its owner can read it.

    Raises:
        BackupError: it cannot be made.
    """
    if path.exists() and not path.is_file():
        raise BackupError(f"{path} is not a file. Choose another name.")
    partial = path.with_name(f".{path.name[:200]}.partial")
    try:
        with ExitStack() as stack:
            with _signals_held():
                file = stack.enter_context(_locked_file(partial, path))
                stack.enter_context(_deleted_on_error(partial))
            file.truncate()  # of a command that was killed
            yield file
            file.flush()
            os.fsync(file.fileno())
            partial.replace(path)
    except OSError as e:
        if e.filename is not None:
            raise
        raise BackupError(f"Cannot write {path}: {e.strerror}.") from None
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def _signals_held() -> Iterator[None]:
    """SIGTERM and Ctrl-C end the command after this block, not within it."""
    held: list[int] = []
    endings = (signal.SIGINT, signal.SIGTERM)
    before = {ending: signal.signal(ending, lambda number, _frame: held.append(number)) for ending in endings}
    try:
        yield
    finally:
        for ending, handler in before.items():
            signal.signal(ending, handler)
        for number in held:
            signal.raise_signal(number)


@contextmanager
def _locked_file(partial: Path, path: Path) -> Iterator[IO[bytes]]:
    """The file to write for a path, which no other command writes and only its owner can read."""
    try:
        descriptor = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except FileNotFoundError:
        raise BackupError(f"There is no folder {path.parent}. Create it.") from None
    with os.fdopen(descriptor, "r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BackupError(f"Another command is writing {path}. Wait for it.") from None
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid():  # another user could read it
            raise BackupError(f"{partial} is in the way. Remove it.")
        os.fchmod(descriptor, 0o600)
        yield file


@contextmanager
def _deleted_on_error(path: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        path.unlink(missing_ok=True)
        raise


@contextmanager
def seekable_input(path: str, spool_dir: Path) -> Iterator[IO[bytes]]:
    """A file to read more than once: the one at the path, or what standard input holds.

    Raises:
        BackupError: there is no such file.
    """
    if path != STREAM:
        try:
            file = Path(path).open("rb")  # noqa: SIM115 - closed below; errors of the block are not about this file
        except FileNotFoundError:
            raise BackupError(f"There is no file {path}.") from None
        except IsADirectoryError:
            raise BackupError(f"{path} is a folder. Name a backup in it.") from None
        with file:
            yield file
    elif sys.stdin.buffer.seekable():
        yield sys.stdin.buffer
    else:
        with tempfile.TemporaryFile(dir=spool_dir) as spooled:
            shutil.copyfileobj(sys.stdin.buffer, spooled)
            yield spooled
