"""What tests of backups compare: the rows and files of a site, and archives as the service writes them."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from app.backup.archive import ArchiveReader, ArchiveWriter, Manifest
from app.backup.service import write_backup
from app.db import Database
from app.settings import Settings
from tests.factories.databases import BACKENDS
from tests.factories.filled_database import all_rows

on_both_databases = pytest.mark.parametrize("database_kind", BACKENDS, indirect=True)
"""For what depends on SQL: other tests of backups use SQLite."""


def silent(done: int, total: int) -> None: ...


def options(site: Settings) -> dict[str, Any]:
    """The settings of a command for a site."""
    found = {"data_dir": site.data_dir, "lessons_dir": site.lessons_dir}
    return found | ({"database_url": site.database_url} if site.database_url else {})


async def rows_of(url: str) -> dict[str, list[dict[str, Any]]]:
    """Every row of a database that nobody has open."""
    db = Database(url)
    try:
        return await all_rows(db)
    finally:
        await db.close()


def files_in(folder: Path) -> dict[str, bytes]:
    """All files below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


async def archive_of(site: Settings) -> BytesIO:
    """A backup, in memory."""
    file = BytesIO()
    await write_backup(site, file, silent)
    return file


def changed(archive: BytesIO, change: Callable[[str, bytes], bytes | None], **facts: Any) -> BytesIO:
    """A backup with other contents, and a manifest that says so: as if this program had made it."""
    archive.seek(0)
    new = BytesIO()
    with ArchiveReader(archive) as reader, ArchiveWriter(new) as writer:
        for name, data in reader.members():
            if (other := change(name, data)) is not None:
                writer.add(name, other)
        manifest = reader.manifest
        told = {"version": manifest.version, "revision": manifest.revision, "rows": manifest.rows} | facts
        writer.finish(Manifest(created_at="2026", database="sqlite", members=writer.members, **told))
    return new


async def deferrable_constraints(url: str) -> int:
    """How many constraints of a PostgreSQL database a restore has left deferrable."""
    db = Database(url)
    try:
        async with db.engine.connect() as connection:
            count = await connection.scalar(text("SELECT count(*) FROM pg_constraint WHERE condeferrable"))
            return int(count or 0)
    finally:
        await db.close()
