"""``lockstep restore``: brings back what ``lockstep backup`` has saved, all of it or nothing."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
from pathlib import Path
from typing import Annotated

import typer

from app.backup.service import restore_backup
from app.backup.site_files import RestoredCourse, alone_in
from app.cli.ansi_filter import plain_text
from app.cli.backup import describe_backup
from app.cli.backup_files import STREAM, seekable_input
from app.cli.console import ENDED_BY_SIGTERM, ending_at_sigterm, fail, print_message, read_settings
from app.cli.db import DATABASE_ERRORS, describe_error
from app.cli.row_progress import RowProgress
from app.cli.web_user import as_web_user, needs_web_user, web_user_environment
from app.settings import Settings


def restore(
    file: Annotated[str, typer.Argument(help="The backup, or - for standard input.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Delete what is in the database, if it is not empty.")
    ] = False,
) -> None:
    """Restore a backup into an empty database, of either kind. Stop the server first.

    If anything fails, everything is as it was. A backup of an older version is upgraded.
    """
    settings = read_settings()
    os.umask(0o077)
    try:
        if needs_web_user(settings.data_dir):  # root must not touch that user's files
            raise typer.Exit(_restore_as_web_user(settings, file, replace))
        settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = _become_owner(settings.data_dir, file)
        spool = settings.data_dir
        with (
            ending_at_sigterm(ENDED_BY_SIGTERM),
            alone_in(settings.data_dir),
            seekable_input(file, spool) as backup,
            RowProgress("Restored") as progress,
        ):
            summary = asyncio.run(restore_backup(settings, backup, progress, replace=replace))
    except DATABASE_ERRORS as e:
        fail(describe_error(e, settings))
    made = f"Lockstep {summary.backup.version} made it at {summary.backup.created_at}"
    print_message(f"Restored {describe_backup(summary.backup)}. {made}.")
    if summary.lessons == settings.lessons_dir:
        print_message(f"Its lessons are in {summary.lessons}.")
    elif summary.lessons:
        print_message(
            f"Its lessons differ from those in {settings.lessons_dir}, which were left as they are. The backup's are "
            f"in {summary.lessons}: copy what you need, and delete the folder."
        )
    for restored in summary.courses:
        print_message(plain_text(_describe_course(restored)))


def _describe_course(restored: RestoredCourse) -> str:
    course, before = restored.course, restored.replaced
    if restored.failure:
        source = shlex.quote(f"{course.url}@{course.commit}")
        options = f"--name {course.slug} --folder {shlex.quote(course.folder)}"
        return (
            f"The course {course.slug} could not be restored: {restored.failure}. "
            f"Add it again: lockstep course add {source} {options}"
        )
    if before is not None:
        return (
            f"The course {course.slug} is at commit {course.commit} again. Before, it was at {before.commit}; "
            f"to go back to that, use: lockstep course update {course.slug} --to {before.commit}"
        )
    return f"The course {course.slug} is served at commit {course.commit}."


def _become_owner(data_dir: Path, file: str) -> str:
    """Give up root if the folder is another user's, because the service could not read root's files.

    Returns:
        where the backup is now: the other user need not be able to open its file.
    """
    owner = data_dir.stat()
    if os.geteuid() != 0 or owner.st_uid == 0:
        return file
    if file != STREAM:
        with seekable_input(file, data_dir) as backup:
            os.dup2(backup.fileno(), 0)
    os.setgroups([])
    os.setgid(owner.st_gid)
    os.setuid(owner.st_uid)
    return STREAM


def _restore_as_web_user(settings: Settings, file: str, replace: bool) -> int:
    """Restore in a process of the user whose files are replaced. Root opens the backup for it."""
    options = ["--replace"] if replace else []
    command = as_web_user(settings, "app.cli.main", "restore", *options, STREAM, lessons=True)
    environment = web_user_environment(settings)
    if file == STREAM:
        return subprocess.run(command, env=environment).returncode
    with seekable_input(file, Path()) as backup:
        return subprocess.run(command, env=environment, stdin=backup).returncode
