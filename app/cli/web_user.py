"""Commands of root on files of the web application's user.

That user may have put a link or a prepared database in their place, so root must not touch them.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from app.cli.console import read_settings
from runners.wire.users import WEB_USER, is_root_of_the_machine

_RUN_AS = "runners.sandbox.run_as"


def leave_root() -> None:
    """Run this command again as the web application's user, if root has started it and the data is that user's."""
    data_dir = read_settings().data_dir
    if not needs_web_user(data_dir):
        return
    os.environ["LOCKSTEP_DATA_DIR"] = str(data_dir)
    os.execv(sys.executable, as_web_user(data_dir, "app.cli.main", *sys.argv[1:]))  # noqa: S606 - there is no shell


def needs_web_user(data_dir: Path) -> bool:
    """Whether this is root, and ``lockstep serve`` has given the web application's user the files in this folder."""
    if not is_root_of_the_machine() or _RUN_AS in sys.orig_argv:  # then run_as could not: the web keeps root, too
        return False
    with suppress(FileNotFoundError):
        return data_dir.stat().st_gid == WEB_USER
    return False


def as_web_user(data_dir: Path, module: str, *arguments: str) -> list[str]:
    """The command that root runs a module with, as the web application's user, whose other processes cannot access
    it: it has root's terminal."""
    return [sys.executable, "-P", "-m", _RUN_AS, str(WEB_USER), str(data_dir), "--", "-m", module, *arguments]
