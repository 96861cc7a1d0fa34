"""What makes a command run as a plain user where the tests run as root.

Python may then live in a folder that only root may enter (``/root/.pyenv``): in a mount namespace of its own, the
command finds it there all the same.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runners.sandbox.cgroups import own_paths

_REPOSITORY = Path(__file__).resolve().parents[2]
_STAGE = "/mnt"
_CGROUPS = Path("/sys/fs/cgroup")


def unprivileged_command(uid: int) -> tuple[str, ...]:
    """The prefix of a command line; empty for unprivileged users."""
    if os.geteuid() != 0:
        return ()
    if not shutil.which("setpriv"):
        pytest.skip("setpriv is not here, so root cannot become a plain user for a test")
    become = f'exec setpriv --reuid {uid} --regid {uid} --clear-groups "$@"'
    return ("unshare", "--mount", "sh", "-c", f"{mounts_for_everybody()} && {become}", "sh")


def mounts_for_everybody() -> str:
    """Shell commands for a mount namespace of its own, in which every user may enter Python and the repository."""
    needed = {Path(folder).resolve() for folder in (sys.base_prefix, sys.prefix, _REPOSITORY)}
    closed = {folder: at for folder in needed if (at := _closed_at(folder)) is not None}
    lines = ["mount --make-rprivate /", f"mount -t tmpfs none {_STAGE}"]
    for number, folder in enumerate(sorted(closed)):
        lines.append(f"mkdir {_STAGE}/{number} && mount --bind {shlex.quote(str(folder))} {_STAGE}/{number}")
    lines += [f"mount -t tmpfs -o mode=755 none {shlex.quote(str(at))}" for at in sorted(set(closed.values()))]
    for number, folder in enumerate(sorted(closed)):
        place = shlex.quote(str(folder))
        lines.append(f"mkdir -p {place} && mount --bind {_STAGE}/{number} {place}")
    return " && ".join(lines)


@contextmanager
def delegated_cgroups(uid: int) -> Iterator[tuple[str, ...]]:
    """The prefix of a command line that root puts in cgroups of this user's, as systemd does; skips without any."""
    own = own_paths()
    kinds = ("",) if (_CGROUPS / "cgroup.controllers").exists() else ("memory", "pids", "cpu", "cpuacct")
    folders = [_CGROUPS / kind / own.get(kind, "").lstrip("/") / f"delegated-{uid}" for kind in kinds]
    try:
        for folder in folders:
            folder.mkdir(exist_ok=True)  # cpu and cpuacct may be one
            for path in (folder, *(folder / f"cgroup.{name}" for name in ("procs", "subtree_control"))):
                if path.exists():
                    os.chown(path, uid, uid)
    except OSError:
        pytest.skip("no cgroup can be delegated here")
    enter = "; ".join(f"echo $$ > {shlex.quote(str(folder / 'cgroup.procs'))}" for folder in folders)
    yield ("sh", "-c", f'{enter}; exec "$@"', "sh")
    for folder in folders:
        for left in (*folder.glob("*/*/"), *folder.glob("*/"), folder):
            for _ in range(100):  # what has ended takes a moment to leave
                try:
                    left.rmdir()
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.05)
                    continue
                break


def _closed_at(folder: Path) -> Path | None:
    """The outermost folder on the path that other users may not enter."""
    return next((at for at in reversed((folder, *folder.parents)) if not at.stat().st_mode & 0o001), None)
