"""The private folder of one Jupyter process: links to its kernels' sockets, and its own supervisor's files.

It stays locked while that process lives. A killed process leaves it behind; later processes remove it with
``remove_stale_folders``, and so does the supervisor when such a process releases a kernel.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

_PREFIX = "lockstep-jupyter-"
_UNLOCKED = "lockstep-new-jupyter-"
"""A folder that is not locked yet has a name that ``remove_stale_folders`` ignores."""


class PrivateFolder:
    """A new folder that only this user can enter; ``close`` removes it."""

    def __init__(self) -> None:
        new = Path(tempfile.mkdtemp(prefix=_UNLOCKED))
        self._lock = os.open(new, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.path = new.rename(new.with_name(_PREFIX + new.name.removeprefix(_UNLOCKED)))

    def close(self) -> None:
        """Remove it and everything in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def remove_stale_folders() -> None:
    """Remove this user's folders whose process has ended."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            if os.fstat(handle).st_uid == os.geteuid():
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:
            pass
        finally:
            os.close(handle)
