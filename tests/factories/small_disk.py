"""A small disk for a database: a tmpfs that a test can fill up and empty."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from errno import ENOSPC
from pathlib import Path

import pytest
from sqlalchemy import make_url

from tests.factories.databases import ask_server
from tests.factories.postgresql_server import postgresql_server

_CHUNK = bytes(65_536)


class SmallDisk:
    """The disk, mounted at ``path``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._filler = path / "filler"

    def fill(self) -> None:
        """Fill it up completely."""
        with self._filler.open("ab", buffering=0) as file:
            piece = _CHUNK
            while piece:
                try:
                    file.write(piece)
                except OSError as e:
                    if e.errno != ENOSPC:
                        raise
                    piece = piece[: len(piece) // 2]

    def free(self) -> None:
        """Free the space."""
        self._filler.unlink()

    def make_read_only(self) -> None:
        """Let nothing be written from now on."""
        subprocess.run(["mount", "-o", "remount,ro", self.path], check=True)


@contextmanager
def small_disk(megabytes: int) -> Iterator[SmallDisk]:
    """A disk of this size. Skips the test if this process may not mount one."""
    folder = Path(tempfile.mkdtemp(prefix="lockstep-disk-"))
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=755", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        folder.rmdir()
        pytest.skip("a disk can only be mounted by root")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
        folder.rmdir()


@asynccontextmanager
async def database_on(disk: SmallDisk, kind: str) -> AsyncIterator[str]:
    """The URL of an empty database of that kind whose data is on the disk.

    PostgreSQL's has a server of its own: while the disk is full, no checkpoint of the server succeeds.
    """
    if kind == "sqlite":
        yield f"sqlite+aiosqlite:///{disk.path / 'lockstep.db'}"
        return
    with postgresql_server() as server:
        folder = disk.path / "tablespace"
        folder.mkdir()
        os.chown(folder, server.owner, -1)
        await ask_server(f"CREATE TABLESPACE small LOCATION '{folder}'", server.url)
        await ask_server("CREATE DATABASE small TABLESPACE small", server.url)
        yield make_url(server.url).set(database="small").render_as_string(hide_password=False)
