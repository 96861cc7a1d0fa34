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

from tests.factories.databases import ask_server, server_url, unique_name

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
    """The URL of an empty database of that kind whose data is on the disk."""
    if kind == "sqlite":
        yield f"sqlite+aiosqlite:///{disk.path / 'lockstep.db'}"
        return
    data = Path(await ask_server("SHOW data_directory"))  # skips the test where there is no server
    folder = disk.path / "tablespace"
    _make_owned_like(data, folder)
    name = unique_name("small")
    await ask_server(f"CREATE TABLESPACE {name} LOCATION '{folder}'")
    try:
        await ask_server(f"CREATE DATABASE {name} TABLESPACE {name}")
        yield server_url().set(database=name).render_as_string(hide_password=False)
    finally:
        await ask_server(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        await ask_server(f"DROP TABLESPACE {name}")


def _make_owned_like(owned: Path, folder: Path) -> None:
    if not owned.exists():
        pytest.skip("the server of PostgreSQL is on another machine")
    folder.mkdir()
    os.chown(folder, owned.stat().st_uid, owned.stat().st_gid)
