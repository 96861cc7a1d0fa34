"""The outer sandbox around the zygote: builds the command line that starts it.

Bubblewrap shows the zygote the operating system, Python and this package read-only, and no network. Started as root,
the zygote also becomes an unprivileged user before it imports anything large.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from runners.config.settings import RunnerSettings
from runners.sandbox.layout import DATASETS
from runners.sandbox.policy import python_folders, system_folders
from runners.sandbox.user_pool import session_users


class OuterSandboxUnavailable(RuntimeError):
    """The requested or required outer sandbox is not available. The message says what to do."""


def choose_outer_sandbox(settings: RunnerSettings, *, root: bool, bubblewrap: str | None) -> str:
    """Choose the outer sandbox: ``bubblewrap`` or ``none``.

    Raises:
        OuterSandboxUnavailable: bubblewrap is requested, or required to drop root, but not installed.
    """
    if settings.outer_sandbox == "none":
        if root:
            raise OuterSandboxUnavailable(
                "LOCKSTEP_OUTER_SANDBOX=none needs a container and an unprivileged user; this is root"
            )
        return "none"
    if bubblewrap:
        return "bubblewrap"
    if root or settings.outer_sandbox == "bubblewrap":
        raise OuterSandboxUnavailable("bubblewrap is missing: install the package bubblewrap")
    return "none"


def zygote_command(
    settings: RunnerSettings, arguments: list[str], nodes: tuple[str, ...] = (), facts: tuple[str, ...] = ()
) -> tuple[list[str], str]:
    """Build the command that starts a zygote in its outer sandbox.

    Args:
        settings: the runner's settings.
        arguments: of ``python -m runners.zygote.fork_server``.
        nodes: devices below ``/dev`` that sandboxes may be given. The zygote passes them on and opens none.
        facts: folders below ``/sys`` that sandboxes may be shown.

    Returns:
        The command, and the name of the outer sandbox.
    """
    root = os.geteuid() == 0
    bubblewrap = shutil.which("bwrap")
    outer = choose_outer_sandbox(settings, root=root, bubblewrap=bubblewrap)
    python = [sys.executable, "-m", "runners.zygote.fork_server", *arguments]
    if outer == "none" or bubblewrap is None:
        return python, outer
    users = session_users(settings)
    become = ["--become", str(users[0] - 1), "--users", f"{users[0]}-{users[-1]}"] if users else []
    return [bubblewrap, *_view(settings, nodes, facts, root=root), "--", *python, *become], outer


def _view(settings: RunnerSettings, nodes: tuple[str, ...], facts: tuple[str, ...], *, root: bool) -> list[str]:
    binds, links = system_folders()
    package = str(Path(__file__).resolve().parents[1])
    binds += tuple((p, p) for p in (*python_folders(), package, *facts))
    datasets = datasets_folder(settings)
    if datasets:
        binds += ((datasets, DATASETS),)
    made = {"/tmp"}  # noqa: S108 - the isolation layer's own, and mounted first: Python or the project may lie below it
    options = ["--perms", "1777", "--tmpfs", "/tmp"]  # noqa: S108
    for source, target in sorted(binds, key=lambda b: b[1]):
        for parent in reversed(Path(target).parents[:-1]):
            if str(parent) not in made and not any(t == str(parent) for _, t in binds):
                made.add(str(parent))
                options += ["--perms", "0755", "--dir", str(parent)]
        options += ["--ro-bind", source, target]
    for target, name in links:
        options += ["--symlink", target, name]
    # /proc is shown completely: a new one for each session can be mounted only if no part of it is covered.
    options += ["--dev", "/dev", "--bind", "/proc", "/proc"]
    for node in nodes:
        options += ["--dev-bind", f"/dev/{node}", f"/dev/{node}"]
    options += ["--unshare-net", "--unshare-ipc", "--unshare-uts", "--die-with-parent", "--new-session"]
    options += ["--setenv", "PYTHONPATH", str(Path(package).parent)]
    if root:  # to become an unprivileged user, and in each child the session's user
        options += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    return options


def datasets_folder(settings: RunnerSettings) -> str | None:
    """The node's data set cache, if it exists."""
    folder = (settings.data_dir / "datasets").absolute()
    return str(folder) if folder.is_dir() else None
