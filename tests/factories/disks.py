"""A small disk of its own for a database: a tmpfs that a test fills up, and empties again."""

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
from sqlalchemy import make_url, text
from sqlalchemy.ext.asyncio import create_async_engine

from tests.factories.databases import POSTGRES, empty_database

_PIECE = bytes(65_536)


class SmallDisk:
    """Mounted at ``path``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._filler = path / "filler"

    def fill(self) -> None:
        """Leave no byte free."""
        with self._filler.open("ab", buffering=0) as file:
            piece = _PIECE
            while piece:
                try:
                    file.write(piece)
                except OSError as e:
                    if e.errno != ENOSPC:
                        raise
                    piece = piece[: len(piece) // 2]

    def free(self) -> None:
        """Give the room back."""
        self._filler.unlink()


@contextmanager
def small_disk(megabytes: int) -> Iterator[SmallDisk]:
    """A disk of this size. Skips the test where this process may not mount one."""
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
    await (await empty_database(kind, disk.path)).close()  # skips the test where there is no server
    data = Path(await _ask("SHOW data_directory"))
    folder = disk.path / "tablespace"
    _make_owned_like(data, folder)
    await _ask(f"CREATE TABLESPACE small LOCATION '{folder}'")
    try:
        await _ask("CREATE DATABASE small TABLESPACE small")
        yield make_url(os.environ[POSTGRES]).set(database="small").render_as_string(hide_password=False)
    finally:
        await _ask("DROP DATABASE IF EXISTS small WITH (FORCE)")
        await _ask("DROP TABLESPACE small")


async def _ask(statement: str) -> str:
    """Outside of a transaction, as databases and tablespaces are made."""
    server = create_async_engine(os.environ[POSTGRES], isolation_level="AUTOCOMMIT")
    try:
        async with server.connect() as connection:
            answer = await connection.execute(text(statement))
            return str(answer.scalar()) if answer.returns_rows else ""
    finally:
        await server.dispose()


def _make_owned_like(owned: Path, folder: Path) -> None:
    if not owned.exists():
        pytest.skip("the server of PostgreSQL is on another machine")
    folder.mkdir()
    os.chown(folder, owned.stat().st_uid, owned.stat().st_gid)
