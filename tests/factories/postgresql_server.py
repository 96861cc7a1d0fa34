"""A PostgreSQL server of a test's own, which it can stop, freeze and start again."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
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

    def create(self) -> None:
        """Create its files, and start it."""
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            shutil.chown(self._folder, "postgres")
        self._call("initdb", "--username", "lockstep", "--auth", "trust", "--encoding", "UTF8", "--no-sync")
        self.start()

    def start(self) -> None:
        options = f"-c listen_addresses='' -c unix_socket_directories='{self._folder}' -c fsync=off"
        self._call("pg_ctl", "--wait", "--log", str(self._folder / "log"), "--options", options, "start")

    def stop(self) -> None:
        """Stop it as a restart of its service does: transactions roll back, and connections are closed."""
        self._call("pg_ctl", "--wait", "--mode", "fast", "stop")

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Its processes do nothing inside the block: the kernel accepts connections and bytes, and nobody answers."""
        postmaster = psutil.Process(int((self._folder / "data" / "postmaster.pid").read_text().splitlines()[0]))
        postmaster.suspend()  # first, so that no process is added
        processes = [postmaster, *postmaster.children(recursive=True)]
        for process in processes[1:]:
            process.suspend()
        try:
            yield
        finally:
            for process in reversed(processes):
                process.resume()

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
def postgresql_server() -> Iterator[PostgresqlServer]:
    """A running server. Skips the test if none is installed."""
    programs = next((folder for folder in _PROGRAMS if (folder / "initdb").exists()), None)
    if programs is None:
        pytest.skip("no PostgreSQL server is installed")
    folder = Path(tempfile.mkdtemp(prefix="lp-", dir="/tmp"))
    server = PostgresqlServer(folder, programs)
    try:
        server.create()
        yield server
    finally:
        if (folder / "data" / "postmaster.pid").exists():
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)
