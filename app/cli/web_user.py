"""Commands of root on files of the web application's user.

That user may have put a link or a prepared database in their place, so root must not touch them.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from app.cli.console import read_settings
from app.secret_files import read_secret_files
from app.settings import Settings
from runners.wire.users import WEB_USER, is_root_of_the_machine

_RUN_AS = "runners.sandbox.run_as"


def leave_root(*arguments: str, lessons: bool = False) -> None:
    """Run this command again as the web application's user, if root has started it and the data is that user's.

    ``arguments`` replace those of the command line, where that has relative paths. ``lessons``: the command reads them.
    """
    settings = read_settings()
    if not needs_web_user(settings.data_dir):
        return
    command = as_web_user(settings, "app.cli.main", *(arguments or sys.argv[1:]), lessons=lessons)
    os.execve(sys.executable, command, web_user_environment(settings))  # noqa: S606 - there is no shell


def web_user_environment(settings: Settings) -> dict[str, str]:
    """The environment of a process of the other user, which starts in another folder and cannot read root's files."""
    paths = {"LOCKSTEP_DATA_DIR": str(settings.data_dir), "LOCKSTEP_LESSONS_DIR": str(settings.lessons_dir)}
    return {**read_secret_files(os.environ).variables, **paths}


def needs_web_user(data_dir: Path) -> bool:
    """Whether this is root, and ``lockstep serve`` has given the web application's user the files in this folder."""
    if not is_root_of_the_machine() or _RUN_AS in sys.orig_argv:  # then run_as could not: the web keeps root, too
        return False
    with suppress(FileNotFoundError):
        return data_dir.stat().st_gid == WEB_USER
    return False


def as_web_user(settings: Settings, module: str, *arguments: str, lessons: bool = False) -> list[str]:
    """The command that root runs a module with, as the web application's user, whose other processes cannot access
    it: it has root's terminal."""
    folders = [settings.data_dir, settings.lessons_dir] if lessons else [settings.data_dir]
    run_as = [sys.executable, "-P", "-m", _RUN_AS, str(WEB_USER), *map(str, folders)]
    return [*run_as, "--", "-m", module, *arguments]
