"""``lockstep backup``: writes the database, the secrets and all courses to one file, while the server runs."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Annotated

import typer

from app.backup.archive import BackupError
from app.backup.service import BackupSummary, verify_backup, write_backup
from app.cli.backup_files import (
    STREAM,
    dated_backups,
    dated_name,
    delete_old_backups,
    delete_partial_backups,
    new_file,
)
from app.cli.console import ENDED_BY_SIGTERM, USAGE_ERROR, ending_at_sigterm, fail, print_message, read_settings
from app.cli.db import DATABASE_ERRORS, describe_error
from app.cli.row_progress import RowProgress
from app.cli.web_user import as_web_user, leave_root, needs_web_user, web_user_environment
from app.settings import Settings

_RETRY = timedelta(minutes=10)
"""When a repeated backup that failed is tried again."""

Write = Callable[[Settings, IO[bytes]], None]
"""Writes a backup to a file."""


def backup(
    file: Annotated[
        str | None,
        typer.Argument(
            help="The file to write; a folder, for a file with the time in its name; or - for standard output. "
            "By default, the folder 'backups' in the data directory."
        ),
    ] = None,
    keep: Annotated[
        int | None, typer.Option(min=1, max=10_000, help="Delete all but so many of the folder's backups afterward.")
    ] = None,
    every: Annotated[
        float | None,
        typer.Option(min=0.0001, max=24 * 366, help="Back up every so many hours, until this command is stopped."),
    ] = None,
) -> None:
    """Back up the database, the secrets and all courses to one file, while the server runs.

    The file is complete and was read back when its name appears. It contains secrets: only its owner can read it.
    """
    settings = read_settings()
    os.umask(0o077)
    if file == STREAM:
        if keep or every:
            fail("--keep and --every require a folder.", USAGE_ERROR)
        leave_root(lessons=True)
        _or_fail(settings, lambda: _to_standard_output(settings))
        return
    target = Path(file or settings.data_dir / "backups").absolute()
    write = _write
    if needs_web_user(settings.data_dir):  # root must not touch that user's files
        if _leads_through(settings.data_dir, target):
            options = [f"--{name}={value}" for name, value in (("keep", keep), ("every", every)) if value]
            leave_root("backup", *options, "--", str(target), lessons=True)
        write = _write_as_web_user
    if (usual := settings.data_dir / "backups") in (target, target.parent):
        _or_fail(settings, lambda: usual.mkdir(exist_ok=True))
    if (keep or every) and not target.is_dir():
        fail(f"--keep and --every require a folder, and {target} is not a folder.", USAGE_ERROR)
    with ending_at_sigterm(0 if every else ENDED_BY_SIGTERM):
        if every:
            _repeat(settings, target, keep, timedelta(hours=every), write)
        _or_fail(settings, lambda: _to_file(settings, target, keep, write))


def _leads_through(folder: Path, path: Path) -> bool:
    """Whether a path is in a folder, or would be without a link in that folder that leads elsewhere."""
    inside = folder.resolve()
    return path.resolve().is_relative_to(inside) or inside in {parent.resolve() for parent in path.parents}


def _repeat(settings: Settings, folder: Path, keep: int | None, interval: timedelta, write: Write) -> None:
    """Back up again and again. After a restart, goes on from the newest backup in the folder."""
    while True:
        newest = next((made_at for made_at, _ in dated_backups(folder)), None)
        due = newest + interval - datetime.now(UTC) if newest else timedelta(0)
        time.sleep(max(min(due, interval).total_seconds(), 0))  # the clock may have been wrong
        try:
            _to_file(settings, folder, keep, write)
        except DATABASE_ERRORS as e:
            print_message(f"No backup was made. {describe_error(e, settings)}")
            time.sleep(min(interval, _RETRY).total_seconds())


def _to_file(settings: Settings, target: Path, keep: int | None, write: Write) -> None:
    path = target
    if target.is_dir():
        delete_partial_backups(target)
        path = target / dated_name(datetime.now(UTC))
    with new_file(path) as file:
        write(settings, file)
        summary = asyncio.run(verify_backup(file))
        size = file.seek(0, os.SEEK_END)
    print_message(f"Backed up {describe_backup(summary)} to {path} ({size / 1e6:,.1f} MB), and read all of it back.")
    if keep:
        for old in delete_old_backups(target, keep):
            print_message(f"Deleted {old}.")


def _to_standard_output(settings: Settings) -> None:
    if sys.stdout.isatty():
        raise BackupError("A backup is not text for a terminal. Redirect it to a file, or name a file.")
    with _naming(settings.data_dir), tempfile.TemporaryFile(dir=settings.data_dir) as file:
        _write(settings, file)
        summary = asyncio.run(verify_backup(file))
        file.seek(0)
        with _naming("standard output"):
            shutil.copyfileobj(file, sys.stdout.buffer)
            sys.stdout.buffer.flush()
    print_message(f"Backed up {describe_backup(summary)}, and read all of it back.")


@contextmanager
def _naming(written: Path | str) -> Iterator[None]:
    """Name what is written in errors of the system, such as that a disk is full."""
    try:
        yield
    except OSError as e:
        if e.strerror and e.filename is None:
            raise OSError(e.errno, e.strerror, str(written)) from e
        raise


def _write(settings: Settings, file: IO[bytes]) -> None:
    with RowProgress("Backed up") as progress:
        asyncio.run(write_backup(settings, file, progress))


def _write_as_web_user(settings: Settings, file: IO[bytes]) -> None:
    """Write to a file of root, in a process of the user whose files are read."""
    command = as_web_user(settings, "app.cli.main", "backup", STREAM, lessons=True)
    environment = web_user_environment(settings)
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=file)
    if done.returncode:
        raise BackupError("The web application's user could not make the backup: see above.")


def _or_fail(settings: Settings, act: Callable[[], None]) -> None:
    try:
        act()
    except DATABASE_ERRORS as e:
        fail(describe_error(e, settings))


def describe_backup(summary: BackupSummary) -> str:
    """What is in a backup, for people."""
    rows, tables = _count(summary.rows, "row"), _count(summary.tables, "table")
    parts = [f"{rows} of {tables}", _count(summary.secrets, "secret"), f"{_count(summary.lessons, 'file')} of lessons"]
    if summary.courses:
        parts.append(_count(len(summary.courses), "added course"))
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
