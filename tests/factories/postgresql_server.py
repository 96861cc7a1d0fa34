"""A PostgreSQL server of a test's own, which it can stop, freeze and start again."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

_PROGRAMS = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True), Path("/usr/bin")]


class PostgresqlServer:
    """A server without TCP in a folder of its own."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.url = f"postgresql+asyncpg://lockstep@/postgres?host={folder}"
        self._folder = folder
        self._programs = programs

    @property
    def owner(self) -> int:
        """The ID of the user whose its files are."""
        return self._folder.stat().st_uid

    def create(self) -> None:
        """Create its files, and start it."""
        self._folder.chmod(0o755)  # whoever may connect can reach the socket
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            shutil.chown(self._folder, "postgres")
        self._call("initdb", "--username", "lockstep", "--auth", "trust", "--encoding", "UTF8", "--no-sync")
        self.start()

    def start(self) -> None:
        options = f"-c listen_addresses='' -c unix_socket_directories='{self._folder}' -c fsync=off"
        self._call("pg_ctl", "--wait", "--log", str(self._folder / "log"), "--options", options, "start")

    def kill(self) -> None:
        """Kill all its processes at once, as the end of its container does. Does nothing if it is not running."""
        for process in self._processes():
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def running(self) -> bool:
        """Whether its first process exists."""
        return bool(self._processes())

    def stop(self) -> None:
        """Stop it as a restart of its service does: transactions roll back, and connections are closed."""
        self._call("pg_ctl", "--wait", "--mode", "fast", "stop")

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Its processes do nothing inside the block: the kernel accepts connections and bytes, and nobody answers."""
        self._processes()[0].suspend()  # first, so that no process is added
        processes = self._processes()
        for process in processes[1:]:
            with suppress(psutil.NoSuchProcess):
                process.suspend()
        try:
            yield
        finally:
            for process in reversed(processes):
                with suppress(psutil.NoSuchProcess):
                    process.resume()

    def _processes(self) -> list[psutil.Process]:
        """The first one and those that it has started; none if it is not running."""
        try:
            number = int((self._folder / "data" / "postmaster.pid").read_text().splitlines()[0])
            first = psutil.Process(number)
            if first.status() == psutil.STATUS_ZOMBIE:
                return []
            return [first, *first.children(recursive=True)]
        except (FileNotFoundError, IndexError, ValueError, psutil.NoSuchProcess):
            return []

    def _call(self, program: str, *arguments: str) -> None:
        user = "postgres" if os.geteuid() == 0 else None
        done = subprocess.run(
            [self._programs / program, "--pgdata", self._folder / "data", *arguments],
            user=user,
            group=pwd.getpwnam(user).pw_gid if user else None,
            extra_groups=[] if user else None,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,  # a pipe would stay open as long as the server
            check=False,
        )
        assert done.returncode == 0, f"{program} failed: {arguments}"


@contextmanager
def postgresql_server(place: Path = Path("/tmp")) -> Iterator[PostgresqlServer]:
    """A running server with its files in a place with a short path. Skips the test if none is installed."""
    programs = next((folder for folder in _PROGRAMS if (folder / "initdb").exists()), None)
    if programs is None:
        pytest.skip("no PostgreSQL server is installed")
    folder = Path(tempfile.mkdtemp(prefix="lp-", dir=place))
    server = PostgresqlServer(folder, programs)
    try:
        server.create()
        yield server
    finally:
        if server.running():
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)
