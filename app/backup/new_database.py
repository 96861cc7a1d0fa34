"""A new database in the place of an empty one, or of one that is to be replaced: all of it, or nothing changes.

PostgreSQL: one transaction. SQLite: a file beside the database's, which takes its place at the end.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path

from sqlalchemy import Connection, MetaData, func, inspect, select, text
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncConnection

from app import migrate
from app.backup.archive import BackupError
from app.backup.site_files import DRAFT_PREFIX
from app.db import Database

_SQLITE_FILES = ("-wal", "-shm", "-journal")


class DatabaseNotEmpty(BackupError):
    """The database has rows, and nobody said that they may go."""


class DatabaseInUse(BackupError):
    """Another program has the database open."""


@asynccontextmanager
async def new_database(url: str, revision: str, *, replace: bool) -> AsyncIterator[AsyncConnection]:
    """A connection to an empty schema at a revision.

    When the block ends, the database at the URL is this one. If the block fails, the database at the URL is as it was.

    Raises:
        BackupError: the database at the URL has rows and ``replace`` is false, or another program is using it.
    """
    create = _new_file if make_url(url).get_backend_name() == "sqlite" else _emptied_database
    async with create(url, revision, replace) as connection:
        yield connection


@asynccontextmanager
async def _emptied_database(url: str, revision: str, replace: bool) -> AsyncIterator[AsyncConnection]:
    db = Database(url)
    try:
        async with db.engine.begin() as connection:
            await connection.run_sync(migrate.begin)
            await connection.run_sync(_empty, replace)
            await connection.run_sync(migrate.upgrade_connection, revision)
            yield connection
    finally:
        await db.close()


def _empty(connection: Connection, replace: bool) -> None:
    """Drop all tables, if they are Lockstep's."""
    others = connection.scalar(
        text(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
            "AND backend_type = 'client backend'"
        )
    )
    if others:
        raise DatabaseInUse(
            f"The database has {others} other connection{'s' * (others > 1)}. Stop Lockstep, and everything else that "
            "uses it, first."
        )
    tables = set(inspect(connection).get_table_names())
    if tables and "alembic_version" not in tables:
        raise DatabaseNotEmpty("The database has tables that are not Lockstep's. Choose another database.")
    metadata = MetaData()
    metadata.reflect(connection)
    if not replace:
        _refuse_rows(connection, metadata)
    metadata.drop_all(connection, checkfirst=False)


@asynccontextmanager
async def _new_file(url: str, revision: str, replace: bool) -> AsyncIterator[AsyncConnection]:
    file = Path(make_url(url).database or "")
    if await asyncio.to_thread(_check_file, file) and not replace:
        await _refuse_file_with_rows(url)
    with tempfile.TemporaryDirectory(prefix=DRAFT_PREFIX, dir=file.parent) as folder:
        draft = Path(folder) / "lockstep.db"
        db = Database(f"sqlite+aiosqlite:///{draft}")
        try:
            async with db.engine.begin() as connection:
                await connection.run_sync(migrate.begin)
                await connection.run_sync(migrate.upgrade_connection, revision)
                yield connection
        finally:
            await db.close()
        await asyncio.to_thread(_take_place, draft, file)


def _check_file(file: Path) -> bool:
    """Whether there is a database. Checks that nobody else has it open, and folds its write-ahead log into it."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not file.exists():
        return False
    if not file.is_file():
        raise BackupError(f"{file} is not a file. Remove it.")
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=rw", uri=True, timeout=0)) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")  # only possible while no other connection is open
    except sqlite3.OperationalError as e:
        if e.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
            raise DatabaseInUse(f"Another program is using {file}. Stop Lockstep first.") from None
        raise BackupError(f"{file} cannot be opened: {e}. Check who may read and write it.") from None
    except sqlite3.DatabaseError:  # damaged: a reason to restore a backup
        pass
    return True


async def _refuse_file_with_rows(url: str) -> None:
    db = Database(url)
    try:
        async with db.engine.connect() as connection:
            metadata = MetaData()
            await connection.run_sync(metadata.reflect)
            await connection.run_sync(_refuse_rows, metadata)
    finally:
        await db.close()


def _refuse_rows(connection: Connection, metadata: MetaData) -> None:
    for table in metadata.sorted_tables:
        if table.name != "alembic_version" and connection.scalar(select(func.count()).select_from(table)):
            raise DatabaseNotEmpty(
                f"The database is not empty: the table {table.name} has rows. Choose an empty database, or replace "
                "this one with --replace, which deletes everything in it."
            )


def _take_place(draft: Path, file: Path) -> None:
    with closing(sqlite3.connect(draft)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    with draft.open("rb") as written:
        os.fsync(written.fileno())
    _check_file(file)  # it may have been opened meanwhile
    for suffix in _SQLITE_FILES:
        with suppress(FileNotFoundError):
            file.with_name(f"{file.name}{suffix}").unlink()
    draft.replace(file)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
