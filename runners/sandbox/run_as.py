"""``python -m runners.sandbox.run_as USER FOLDER... -- COMMAND...``: runs a command as a user without any rights.

``lockstep serve`` starts the web application with it if root has started ``serve``. The user may enter the folders and
those of Python and Lockstep, even below one that only root may enter. Everything that the command starts ends with it.

``-- -m MODULE...`` runs a module in this process, which other processes of the user can end, but not access. Commands
of root that use the user's files are run so.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import structlog

from runners.sandbox import linux
from runners.sandbox.closed_folders import closed_at, cover_closed_folders
from runners.sandbox.pid_namespace import enter_pid_namespace
from runners.sandbox.policy import python_folders
from runners.sandbox.seccomp import LibseccompMissing, compile_service_filter

log = structlog.get_logger()

_PACKAGE = Path(__file__).resolve().parents[1]


def main(arguments: Sequence[str]) -> None:
    """Become the command, or run the module. It gets SIGTERM when the process that started it ends."""
    at = arguments.index("--")
    user, folders, command = int(arguments[0]), [Path(name) for name in arguments[1:at]], list(arguments[at + 1 :])
    needed = [folder for folder in (*map(Path, python_folders()), _PACKAGE.parent, *folders) if folder.is_dir()]
    is_module = command[0] == "-m"
    if _make_accessible(needed):
        drop_rights = partial(_become, user, _service_filter(warns=not is_module))
        if not is_module:
            try:
                enter_pid_namespace(partial(drop_rights, dumpable=False))
            except OSError as e:
                log.warning("what the web application starts may outlive it", error=f"no PID namespace: {e}")
        drop_rights(dumpable=not is_module)
        for file in (_PACKAGE / "__init__.py", Path(sys.executable), *(f for f in folders if f in needed)):
            if not os.access(file, os.R_OK):
                sys.exit(f"The web application's user {user} cannot read {file}. Make it readable for every user.")
    linux.die_with_parent(signal.SIGTERM)  # a change of user clears it
    if is_module:
        sys.argv = command[1:]
        runpy.run_module(command[1], run_name="__main__", alter_sys=True)
        return
    os.execv(command[0], command)  # noqa: S606 - there is no shell


def _make_accessible(needed: Sequence[Path]) -> bool:
    umask = os.umask(0o022)
    try:
        cover_closed_folders(needed)
    except OSError as e:
        closed = [str(at) for folder in needed if (at := closed_at(folder))]
        if closed:
            why = f"only root may enter {closed[0]}, and nothing may be mounted over it: {e}"
            log.warning("the web application keeps root", error=why)
            return False
    finally:
        os.umask(umask)
    return True


def _service_filter(*, warns: bool) -> bytes | None:
    """None without libseccomp; a filter that cannot be compiled ends this process."""
    try:
        return compile_service_filter(makes_sandboxes=False)
    except LibseccompMissing as e:
        if warns:  # the output of a command is its own
            log.warning("the web application may make every system call", error=str(e))
        return None
    except RuntimeError as e:
        sys.exit(f"The web application cannot start: {e}.")


def _become(user: int, seccomp_filter: bytes | None, *, dumpable: bool) -> None:
    os.chdir("/")
    os.setgroups([])
    linux.switch_user(user, dumpable=dumpable)
    linux.no_new_privileges()
    if seccomp_filter:
        try:
            linux.install_service_filter(seccomp_filter)
        except OSError as e:
            sys.exit(f"The web application cannot start: {e}. The kernel needs CONFIG_SECCOMP_FILTER.")
    os.environ["HOME"] = "/nonexistent"  # root's cannot be entered, and libraries that look there would fail
    if not os.access(tempfile.gettempdir(), os.W_OK):
        os.environ["TMPDIR"] = "/tmp"  # noqa: S108 - only private files are made there


if __name__ == "__main__":
    main(sys.argv[1:])
