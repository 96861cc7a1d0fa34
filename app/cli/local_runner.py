"""A supervisor of our own: a child process that lives as long as we do, and is started again if it dies.

Unless it refuses to start: then it has said why, and would say the same again.
"""

from __future__ import annotations

import os
import signal
import socket
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

_FIRST_DELAY_S = 0.5
_MAX_DELAY_S = 30.0
_STABLE_AFTER_S = 20.0
"""A supervisor that lived this long did start; the next pause is short again."""
_GRACE_S = 5.0
"""Between asking the supervisor to end and ending it."""
_REFUSED_STATUS = 2
"""The status of a supervisor that cannot use its settings or its place."""
_RUNNER_UMASK = 0o022
"""Not ours: kernels run as other users and must be able to read what the supervisor lays out for them."""

PrintMessage = Callable[[str], None]


def make_private_directory(folder: Path) -> None:
    """Make a folder that only we can enter, or make it so. Refuses one of someone else's (PermissionError)."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to another user")
    folder.chmod(0o700)


class LocalRunner:
    """Starts ``python -m runners.supervisor.server`` on a socket, in a process group of its own.

    A thread starts and watches it. Should our process be killed, that thread ends with it, and the system then ends the
    supervisor (``--die-with-parent``).
    """

    def __init__(
        self,
        socket: Path,
        data_dir: Path,
        *,
        extra: Mapping[str, str] | None = None,
        untrusted_users: bool = False,
        tell: PrintMessage,
        on_refusal: Callable[[], None] = lambda: None,
    ) -> None:
        self.socket = socket
        self.settled = threading.Event()
        """Set once it serves, refused to start, or has ended by itself: it is known what its settings led to."""
        self.refused = False
        """True once it refused to start; ``on_refusal`` has been called, in the thread that watches."""
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
        make_private_directory(self.socket.parent)
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
            _terminate(child)  # whatever is left of its group
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
        """Whether this child listens at the socket; another supervisor may."""
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
    """Ask the process to end, wait a little, then end its whole group."""
    if child.poll() is None:
        child.terminate()
        with suppress(subprocess.TimeoutExpired):
            child.wait(_GRACE_S)
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
