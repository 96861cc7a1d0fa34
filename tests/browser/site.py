"""The whole of Lockstep as two processes, so that the web process can be ended while the runner continues."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import nullcontext, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from runners.wire.client import ResourceNotFound, RunnerClient, RunnerUnavailable
from tests.browser.loopback import Loopback
from tests.factories.http_server import free_port

_PATIENCE_S = 120.0
"""For a machine with much else to do. A process that ends is noticed at once."""


class Site:
    """``lockstep serve`` and ``python -m runners.supervisor.server`` with their own data directory."""

    def __init__(self, *, network: Loopback | None = None, runner: bool | Site = True, **settings: str) -> None:
        """``settings`` of web process and runner, named as in their classes; ``{port}`` in them is the site's.

        A runner takes seconds to import TensorFlow. A site whose pages run no code needs none, and one without
        settings for it can use the ``runner`` of another site. Without ``network`` the site is in that of the machine.
        """
        self._inside = network.entered if network else nullcontext
        self._with_runner = runner is True
        self._folder = Path(tempfile.mkdtemp(prefix="lockstep-browser-"))
        self._socket: Path = runner._socket if isinstance(runner, Site) else self._folder / "supervisor.sock"
        with self._inside():
            self._port = free_port()
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("LOCKSTEP_")},
            "LOCKSTEP_DATA_DIR": str(self._folder / "data"),
            "LOCKSTEP_RUNNER_SOCKET": str(self._socket),
            "LOCKSTEP_PREPARE_DATA_SETS": "0",
            **{f"LOCKSTEP_{k.upper()}": v.replace("{port}", str(self._port)) for k, v in settings.items()},
        }
        self._log = (self._folder / "log").open("wb")
        self._runner: subprocess.Popen[bytes] | None = None
        self._web: subprocess.Popen[bytes] | None = None

    @property
    def host(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self._port}"

    @property
    def hosts(self) -> tuple[str, str]:
        """The address of the site with its host name."""
        return self.host, f"localhost:{self._port}"

    @property
    def database(self) -> str:
        """The URL of its database."""
        return f"sqlite+aiosqlite:///{self._folder / 'data' / 'lockstep.db'}"

    def url(self, path: str) -> str:
        """The full URL of a path."""
        return f"http://{self.host}{path}"

    def log(self) -> str:
        """Everything that both processes have written so far."""
        return (self._folder / "log").read_text(errors="replace")

    def __enter__(self) -> Self:
        try:
            if self._with_runner:
                self.start_runner()
            self.start_web()
            if self._with_runner:
                self._wait("/readyz")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for process in (self._web, self._runner):
            if process is not None:
                _end(process)
        self._log.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def start_runner(self) -> None:
        """Start the runner on the same socket as before; it is ready a few seconds later."""
        command = [
            sys.executable,
            "-m",
            "runners.supervisor.server",
            "--socket",
            str(self._socket),
            "--die-with-parent",
        ]
        self._runner = self._start(command)

    def kill_runner(self) -> None:
        """Kill the runner."""
        assert self._runner is not None
        self._runner.kill()
        self._runner.wait()
        self._runner = None

    async def end_sessions(self) -> None:
        """End all learners' sessions. No later test uses them, and watching them costs CPU time."""
        async with RunnerClient(self._socket) as runner:
            with suppress(RunnerUnavailable):
                for session in await runner.owned_sessions():
                    with suppress(ResourceNotFound):
                        await runner.end(session.id)

    def start_web(self) -> None:
        """Start the web process on the same port as before."""
        command = [sys.executable, "-c", "from app.cli.main import app; app()", "serve", "--port", str(self._port)]
        self._web = self._start(["setpriv", "--pdeathsig", "TERM", *command])  # as the runner, which ends by itself
        self._wait("/healthz")

    def kill_web(self) -> None:
        """Kill the web process, as a crash would."""
        assert self._web is not None
        self._web.kill()
        self._web.wait()
        self._web = None

    def _start(self, command: list[str]) -> subprocess.Popen[bytes]:
        with self._inside():
            return subprocess.Popen(command, env=self._environment, stdout=self._log, stderr=subprocess.STDOUT)

    def _wait(self, path: str) -> None:
        end = time.monotonic() + _PATIENCE_S
        while time.monotonic() < end:
            try:
                with self._inside(), urllib.request.urlopen(self.url(path), timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
            if any(process is not None and process.poll() is not None for process in (self._web, self._runner)):
                break
        raise TimeoutError(f"{path} did not answer; the end of the log: {self.log()[-2000:]}")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
