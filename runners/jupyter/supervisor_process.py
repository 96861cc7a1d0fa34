"""Finds the supervisor for a Jupyter process's kernels: one that is already running, or one of its own.

Its own supervisor is shared by all kernels of the process and lives as long as the process. It is started in a thread
that lives just as long, because the system signals a child when the *thread* that started it has ended.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from runners.jupyter.lease_client import SupervisorUnreachable, fetch_health
from runners.jupyter.private_folder import PrivateFolder, remove_stale_folders
from runners.wire.environment import runner_environment

_PATIENCE_S = 60.0
_GRACE_S = 8.0
_LOOK_EVERY_S = 0.05
_LAST_WORDS = 2000
_UMASK = 0o022
"""If this user is root, kernels run as other users, and must be able to read the supervisor's files for them."""

Tell = Callable[[str], None]


class SupervisorUnavailable(RuntimeError):
    """No supervisor is running, and none could be started; ``str()`` is a sentence."""


@dataclass(frozen=True)
class SupervisorRecipe:
    """Where to find a kernel's supervisor, and how to start one otherwise."""

    socket: Path | None
    """The socket on which one may be running."""
    python: Path
    """A Python interpreter with the runner's packages."""
    data_dir: Path


def ensure_supervisor(recipe: SupervisorRecipe, tell: Tell) -> Path:
    """Return the socket of a supervisor that responds; blocks while one starts.

    Raises:
        SupervisorUnavailable: there is none.
    """
    if told := os.environ.get("LOCKSTEP_RUNNER_SOCKET"):
        if _answers(Path(told)):
            return Path(told)
        raise SupervisorUnavailable(f"No runner responds at {told}, the socket in LOCKSTEP_RUNNER_SOCKET.")
    if recipe.socket and _answers(recipe.socket):
        return recipe.socket
    with _starting:
        own = _own.setdefault((os.getpid(), recipe), ChildSupervisor(recipe))
        return own.running(tell)


def log_tail(socket: Path) -> str:
    """The end of the log of a supervisor that this process has started; empty for another one."""
    with suppress(OSError):
        return socket.with_name("log").read_bytes()[-_LAST_WORDS:].decode(errors="replace").strip()
    return ""


def private_folder() -> Path:
    """This process's folder for sockets; removed when the process ends."""
    with _folder_made:
        if os.getpid() not in _folders:
            remove_stale_folders()
            _folders[os.getpid()] = folder = PrivateFolder()
            atexit.register(_if_still_ours(folder.close))
        return _folders[os.getpid()].path


@dataclass
class ChildSupervisor:
    """A child process of this one, started when first needed, and again if it has ended when needed."""

    recipe: SupervisorRecipe
    _process: subprocess.Popen[bytes] | None = None
    _place: Path = field(default=Path())
    _launched: threading.Event = field(default_factory=threading.Event)
    _trouble: OSError | None = None

    def __post_init__(self) -> None:
        private_folder()  # created first, so that it is removed last
        atexit.register(_if_still_ours(self.end))

    def running(self, tell: Tell) -> Path:
        """Return its socket once it responds. Raises SupervisorUnavailable."""
        if self._process is None or self._process.poll() is not None:
            tell("Lockstep: starting a supervisor; the first kernel waits a few seconds until TensorFlow is loaded.")
            self._start()
        give_up_at = time.monotonic() + _PATIENCE_S
        socket = self._place / "s.sock"
        while not _answers(socket):
            if self._process is None or self._process.poll() is not None or time.monotonic() > give_up_at:
                raise SupervisorUnavailable(self._what_went_wrong())
            time.sleep(_LOOK_EVERY_S)
        return socket

    def end(self) -> None:
        """Ask it to end and wait; kill it if it does not."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE_S)
        self._process.kill()
        self._process.wait()

    def _start(self) -> None:
        if self._process:
            shutil.rmtree(self._place, ignore_errors=True)
        self._place = Path(tempfile.mkdtemp(prefix="s", dir=private_folder()))
        self._launched.clear()
        self._process = self._trouble = None
        threading.Thread(target=self._run, name="lockstep-supervisor", daemon=True).start()
        self._launched.wait()

    def _run(self) -> None:
        command = [
            str(self.recipe.python),
            "-m",
            "runners.supervisor.server",
            "--socket",
            "s.sock",
            "--die-with-parent",
        ]
        defaults = {"LOCKSTEP_DATA_DIR": str(self.recipe.data_dir), "LOCKSTEP_WARM_KERNELS": "0"}
        try:
            with (self._place / "log").open("wb") as log:
                self._process = subprocess.Popen(
                    command,
                    env=defaults | runner_environment(os.environ),
                    cwd=self._place,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    umask=_UMASK,
                )
        except OSError as e:
            self._trouble = e
        self._launched.set()
        if self._process:
            self._process.wait()

    def _what_went_wrong(self) -> str:
        if self._trouble:
            return (
                f"Lockstep's Python cannot be started: {self._trouble}."
                " Run `lockstep kernelspec install` again where Lockstep is now."
            )
        words = log_tail(self._place / "s.sock")
        if "No module named" in words:
            return f"{self.recipe.python} lacks the runner's packages: install lockstep[runner] there. {words}"
        return f"Lockstep's supervisor did not start. {words}"


def _answers(socket: Path) -> bool:
    try:
        fetch_health(socket)
    except SupervisorUnreachable:
        return False
    return True


def _if_still_ours(work: Callable[[], None]) -> Callable[[], None]:
    """Wrap an exit handler, so that a forked child does not run it in its parent's stead."""
    pid = os.getpid()
    return lambda: work() if os.getpid() == pid else None


_starting = threading.Lock()
_folder_made = threading.Lock()
_own: dict[tuple[int, SupervisorRecipe], ChildSupervisor] = {}
_folders: dict[int, PrivateFolder] = {}
