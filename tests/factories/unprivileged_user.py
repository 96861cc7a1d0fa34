"""What makes a command run as a plain user where the tests run as root.

Python may then live in a folder that only root may enter (``/root/.pyenv``): in a mount namespace of its own, the
command finds it there all the same.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

import pytest

_REPOSITORY = Path(__file__).resolve().parents[2]
_STAGE = "/mnt"


def unprivileged_command(uid: int) -> tuple[str, ...]:
    """The prefix of a command line; empty for unprivileged users."""
    if os.geteuid() != 0:
        return ()
    if not shutil.which("setpriv"):
        pytest.skip("setpriv is not here, so root cannot become a plain user for a test")
    needed = {Path(folder).resolve() for folder in (sys.base_prefix, sys.prefix, _REPOSITORY)}
    closed = {folder: at for folder in needed if (at := _closed_at(folder)) is not None}
    lines = ["mount --make-rprivate /", f"mount -t tmpfs none {_STAGE}"]
    for number, folder in enumerate(sorted(closed)):
        lines.append(f"mkdir {_STAGE}/{number} && mount --bind {shlex.quote(str(folder))} {_STAGE}/{number}")
    lines += [f"mount -t tmpfs -o mode=755 none {shlex.quote(str(at))}" for at in sorted(set(closed.values()))]
    for number, folder in enumerate(sorted(closed)):
        place = shlex.quote(str(folder))
        lines.append(f"mkdir -p {place} && mount --bind {_STAGE}/{number} {place}")
    become = f'exec setpriv --reuid {uid} --regid {uid} --clear-groups "$@"'
    return ("unshare", "--mount", "sh", "-c", " && ".join([*lines, become]), "sh")


def _closed_at(folder: Path) -> Path | None:
    """The outermost folder on the path that other users may not enter."""
    return next((at for at in reversed((folder, *folder.parents)) if not at.stat().st_mode & 0o001), None)
