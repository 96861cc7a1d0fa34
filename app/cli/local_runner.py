"""A local supervisor: a child process that lives as long as this one, and is restarted if it dies.

If it refuses to start, it is not restarted: it has said why, and would refuse again.
"""

from __future__ import annotations

import errno
import os
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from runners.wire.environment import runner_environment
from runners.wire.users import WEB_USER

_FIRST_DELAY_S = 0.5
_MAX_DELAY_S = 30.0
_STABLE_AFTER_S = 20.0
"""A supervisor that lived this long had started; the next pause before a restart is short again."""
_GRACE_S = 5.0
"""Seconds between asking the supervisor to end and killing it."""
_REFUSED_STATUS = 2
"""The exit status of a supervisor whose settings or socket are not usable."""
_RUNNER_UMASK = 0o022
"""Not our own umask: kernels run as other users and must be able to read the supervisor's files for them."""

PrintMessage = Callable[[str], None]


class BelongsToAnotherUser(PermissionError):
    """A folder that has to be this user's. ``strerror`` names both."""


def make_private_directory(folder: Path, client_group: int | None = None) -> None:
    """Create a folder that only this user can enter, or restrict it.

    The group of the web application's user keeps its access: a server that is running may need it.

    Args:
        folder: the folder.
        client_group: this group can list it, too, and connect to sockets that are made there.

    Raises:
        BelongsToAnotherUser: another user owns it, or the link to it.
        OSError: it cannot be made or restricted.
    """
    ours = os.getuid()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    status = folder.stat()
    for owner in (status.st_uid, folder.lstat().st_uid):  # it may be somebody else's link to ours
        if owner != ours:
            raise BelongsToAnotherUser(errno.EPERM, f"it belongs to user {owner}, but Lockstep runs as user {ours}")
    if client_group is not None:
        os.chown(folder, -1, client_group)
        folder.chmod(0o2750)
    else:
        folder.chmod(stat.S_IMODE(status.st_mode) & ~0o007 if status.st_gid == WEB_USER else 0o700)


class LocalRunner:
    """Runs ``python -m runners.supervisor.server`` on a socket, in its own process group.

    A thread starts and watches it. If this process is killed, that thread ends, too, and the system then ends the
    supervisor (``--die-with-parent``).
    """

    def __init__(
        self,
        socket: Path,
        data_dir: Path,
        *,
        extra: Mapping[str, str] | None = None,
        untrusted_users: bool = False,
        client_group: int | None = None,
        tell: PrintMessage,
        on_refusal: Callable[[], None] = lambda: None,
    ) -> None:
        self.socket = socket
        self._client_group = client_group
        self.settled = threading.Event()
        """Set once it serves, refused to start, or ended by itself: then the effect of its settings is known."""
        self.refused = False
        """True once it has refused to start; ``on_refusal`` has then been called in the watching thread."""
        self.failures = 0
        """How often it has ended by itself."""
        self._command = [
            sys.executable,
            "-m",
            "runners.supervisor.server",
            "--socket",
            str(socket),
            "--die-with-parent",
        ]
        if untrusted_users:
            self._command.append("--untrusted-users")
        self._environment = {**runner_environment(os.environ), "LOCKSTEP_DATA_DIR": str(data_dir), **(extra or {})}
        self._tell = tell
        self._on_refusal = on_refusal
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="runner", daemon=True)

    def __enter__(self) -> Self:
        make_private_directory(self.socket.parent, self._client_group)
        self._thread.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join()

    def _keep(self) -> None:
        pause_s = _FIRST_DELAY_S
        while not self._stopping.is_set():
            begin = time.monotonic()
            child = self._start()
            while child.poll() is None and not self._stopping.wait(0.05):
                if not self.settled.is_set() and self._serves(child):
                    self.settled.set()
            if self._stopping.is_set():
                _terminate(child)
                return
            _terminate(child)  # the rest of its process group
            if child.returncode == _REFUSED_STATUS:
                self.refused = True
                self.settled.set()
                self._on_refusal()
                return
            self.settled.set()
            if time.monotonic() - begin > _STABLE_AFTER_S:
                pause_s = _FIRST_DELAY_S
            self.failures += 1
            self._tell(f"The runner exited with status {child.returncode}. Restarting it in {pause_s:g} s.")
            self._stopping.wait(pause_s)
            pause_s = min(pause_s * 2, _MAX_DELAY_S)

    def _serves(self, child: subprocess.Popen[bytes]) -> bool:
        """Whether this child, and not another supervisor, listens on the socket."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
            s.settimeout(1)
            try:
                s.connect(str(self.socket))
            except OSError:
                return False
            pid, _user, _group = struct.unpack("3i", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            return bool(pid == child.pid)

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._command,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            umask=_RUNNER_UMASK,
        )


def _terminate(child: subprocess.Popen[bytes]) -> None:
    """Ask the process to end, wait a little, then kill its whole group."""
    if child.poll() is None:
        child.terminate()
        with suppress(subprocess.TimeoutExpired):
            child.wait(_GRACE_S)
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
