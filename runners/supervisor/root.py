"""How a supervisor that root has started gives up root, before it reads anything that a learner has written.

It enters a user namespace that holds only its own users: itself, the zygotes' user, and one for each session. There it
is still root: it can become these users, kill what runs as them, and read their processes in ``/proc``. For the rest of
the machine it is the user ``LOCKSTEP_SERVICE_UID``, without capabilities, and sees only the folders that it needs.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import structlog

from runners.config.settings import RunnerSettings
from runners.datasets.background_prepare import make_folder
from runners.sandbox import cgroups, linux
from runners.sandbox.closed_folders import cover_closed_folders
from runners.sandbox.machine_limits import available_resources
from runners.sandbox.policy import python_folders
from runners.sandbox.user_pool import claim_users, service_users
from runners.supervisor.capacity import session_capacity

log = structlog.get_logger()

_PACKAGE = Path(__file__).resolve().parents[1]
_READABLE = 0o755


def give_up_root(settings: RunnerSettings, bound: Sequence[int]) -> None:
    """Replace this process by the same program without root. Returns only if the machine does not allow that.

    Args:
        settings: the runner's settings.
        bound: descriptors of the supervisor's socket and its lock.

    Raises:
        NoUserRange: its users belong to somebody else.
        PermissionError: its user may not read Lockstep.
    """
    seats = session_capacity(settings, available_resources())
    settings = claim_users(settings.model_copy(update={"max_sessions": seats.count}))
    users = service_users(settings)
    mapping = f"0 {users[0]} 1\n{users[1]} {users[1]} {len(users) - 1}\n"
    if number := linux.run_in_child(lambda: linux.enter_user_namespace(mapping)):
        log.warning("the supervisor keeps root", error=f"no namespace for its users: {os.strerror(number)}")
        return
    os.umask(0o022)  # of the folders that are made here, some are for sandboxes, too
    datasets = (settings.data_dir / "datasets").absolute()
    make_folder(datasets)
    with contextlib.suppress(OSError):  # a read-only disk: it is the same for everybody
        datasets.chmod(_READABLE)  # sessions have other users
        for path in (datasets, *datasets.rglob("*")):
            os.chown(path, users[0], users[0], follow_symlinks=False)
    groups = cgroups.delegate(users[0])
    _clean_up_after_this_process(groups)
    cgroups.enter(groups)
    needed = [*map(Path, python_folders()), _PACKAGE.parent, datasets]
    cover_closed_folders([folder for folder in needed if folder.is_dir()])
    linux.enter_user_namespace(mapping)
    os.setgroups([])
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    for file in (_PACKAGE / "__init__.py", Path(sys.executable)):
        if not os.access(file, os.R_OK):
            raise PermissionError(f"The runner's user {users[0]} cannot read {file}. Make it readable for every user.")
    linux.no_new_privileges()
    for descriptor in bound:
        os.set_inheritable(descriptor, True)
    os.chdir("/")
    os.environ["LOCKSTEP_DATA_DIR"] = str(datasets.parent)
    if not os.access(tempfile.gettempdir(), os.W_OK):
        os.environ["TMPDIR"] = "/tmp"  # noqa: S108 - the supervisor makes private folders there
    prepared = map(str, (*bound, users[0]))
    os.execv(sys.executable, [*sys.orig_argv, "--prepared", *prepared])  # noqa: S606 - there is no shell


_CLEAN_UP = """
trap '' INT TERM HUP
remove_stale_folders() { # as runners.jupyter.private_folder does
  for folder in "${TMPDIR:-/tmp}"/lockstep-jupyter-*; do
    if [ -O "$folder" ]; then flock --nonblock "$folder" rm -rf "$folder"; fi
  done
}
while kill -0 "$1"; do
  sleep 1
  remove_stale_folders
done
shift
for _ in 1 2 3 4 5 6 7 8 9 10; do
  find "$@" -depth -type d -exec rmdir {} ';' 2>/dev/null
  find "$@" 2>/dev/null | grep -q . || exit 0
  sleep 0.3
done
"""


def _clean_up_after_this_process(folders: Sequence[Path]) -> None:
    """Remove what only root can: folders of killed Jupyter processes of root, and in the end this process's cgroups.

    It is done by a shell that keeps root and reads nothing but its arguments.
    """
    command = ["sh", "-c", _CLEAN_UP, "lockstep-clean-up", str(os.getpid()), *map(str, folders)]
    if folders:
        subprocess.Popen(
            command,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
