"""The rows of a database, independent of its kind: read in batches as of one moment, and written to another.

Only the tables and columns of Lockstep's own schema are read: an operator may have added others.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

from sqlalchemy import Connection, DateTime, MetaData, Table, create_engine, func, insert, inspect, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from app import migrate
from app.backup.archive import BackupError, DamagedArchive
from app.database_health import driver_message
from app.db import Database

_BATCH_ROWS = 10_000
_BATCH_BYTES = 4 * 2**20
"""A batch ends after the first row with which its texts are larger."""
_MOST_NUMBER = 2**63 - 1
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")

Progress = Callable[[int, int], None]
"""Called with the number of rows done, and of all rows."""
Schema = Mapping[str, frozenset[str]]
"""The columns of each table."""


@dataclass(frozen=True, slots=True)
class RowBatch:
    """Some rows of a table. A value is None, a bool, a number, a text, bytes, or a datetime in UTC."""

    table: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


@cache
def schema_at(revision: str) -> Schema:
    """The tables that this version's migrations create up to a revision, found by applying them in memory."""
    engine = create_engine("sqlite://")
    try:
        with engine.begin() as connection:
            migrate.upgrade_connection(connection, revision)
            inspector = inspect(connection)
            names = set(inspector.get_table_names()) - {"alembic_version"}
            return {name: frozenset(column["name"] for column in inspector.get_columns(name)) for name in names}
    finally:
        engine.dispose()


@asynccontextmanager
async def consistent_view(db: Database) -> AsyncIterator[AsyncConnection]:
    """A connection that sees the database as it is now, however much others write meanwhile. They do not wait.

    Raises:
        BackupError: there is no database.
    """
    if (file := db.file()) is not None and not file.exists():  # connecting would create it
        raise BackupError(f"There is no database {file}. Check LOCKSTEP_DATA_DIR and LOCKSTEP_DATABASE_URL.")
    async with db.engine.connect() as connection:
        if connection.dialect.name == "postgresql":
            await connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        else:
            await connection.exec_driver_sql("BEGIN")  # with a write-ahead log, the first SELECT fixes what it sees
        yield connection
        await connection.rollback()


async def count_rows(connection: AsyncConnection, tables: Sequence[Table]) -> dict[str, int]:
    """The number of rows of each table."""
    return {
        table.name: (await connection.execute(select(func.count()).select_from(table))).scalar_one() for table in tables
    }


async def reflect(connection: AsyncConnection, schema: Schema) -> list[Table]:
    """The tables of the schema as this database has them; each comes after those that it refers to.

    Raises:
        BackupError: one is missing, or lacks a column.
    """

    def look(connection: Connection) -> list[Table]:
        metadata = MetaData()
        there = set(inspect(connection).get_table_names())
        metadata.reflect(connection, only=[name for name in schema if name in there])
        return [table for table in metadata.sorted_tables if table.name in schema]

    tables = await connection.run_sync(look)
    columns = {table.name: frozenset(column.name for column in table.columns) for table in tables}
    for name in sorted(schema):
        if missing := schema[name] - columns.get(name, frozenset()):
            what = f"the column {min(missing)} of " if name in columns else ""
            raise BackupError(f"The database lacks {what}the table {name}. Restore a backup of it.")
    return tables


async def read_rows(connection: AsyncConnection, table: Table, schema: Schema) -> AsyncGenerator[RowBatch, None]:
    """All rows of a table. Holds one batch in memory at a time."""
    names = [column.name for column in table.columns if column.name in schema[table.name]]
    query = select(*(table.c[name] for name in names)).execution_options(yield_per=_BATCH_ROWS)
    rows: list[list[Any]] = []
    size = 0
    try:
        async with connection.stream(query) as result:
            async for row in result:
                rows.append([_neutral(value) for value in row])
                size += sum(len(value) for value in row if isinstance(value, str | bytes))
                if len(rows) >= _BATCH_ROWS or size >= _BATCH_BYTES:
                    yield RowBatch(table.name, names, rows)
                    rows, size = [], 0
    except ValueError as e:  # SQLite keeps what is not a date in a column of dates
        raise BackupError(f"The table {table.name} has a value that cannot be read: {e}.") from None
    if rows:
        yield RowBatch(table.name, names, rows)


class RowWriter:
    """Writes batches into empty tables, in any order of the rows of one table."""

    def __init__(self, connection: AsyncConnection, tables: Sequence[Table]) -> None:
        self._connection = connection
        self._tables = {table.name: table for table in tables}
        self.written = dict.fromkeys(self._tables, 0)

    async def begin(self) -> None:
        """Let rows of a table refer to later ones of the same table, until ``finish``."""
        if self._connection.dialect.name == "sqlite":
            await self._connection.execute(text("PRAGMA defer_foreign_keys = ON"))
        await self._alter_references("DEFERRABLE INITIALLY DEFERRED")

    async def write(self, batch: RowBatch) -> None:
        """Insert rows.

        Raises:
            BackupError: the database refuses one.
        """
        table = self._tables[batch.table]
        columns = [table.c[name] for name in batch.columns]
        rows = [{c.name: self._own(v, c.type) for c, v in zip(columns, row, strict=True)} for row in batch.rows]
        try:
            await self._connection.execute(insert(table), rows)
        except DBAPIError as e:
            raise BackupError(f"The database refuses a row of the table {batch.table}: {driver_message(e)}") from None
        self.written[batch.table] += len(rows)

    async def finish(self) -> None:
        """Check all references.

        Raises:
            BackupError: a row refers to one that is missing.
        """
        if self._connection.dialect.name == "sqlite":
            broken = (await self._connection.execute(text("PRAGMA foreign_key_check"))).first()
            if broken is not None:
                raise BackupError(f"A row of the table {broken[0]} refers to a row of {broken[2]} that is missing.")
            return
        try:
            await self._connection.execute(text("SET CONSTRAINTS ALL IMMEDIATE"))
        except DBAPIError as e:
            raise BackupError(f"A row refers to one that is missing: {driver_message(e)}") from None
        await self._alter_references("NOT DEFERRABLE")

    async def _alter_references(self, how: str) -> None:
        """Change the constraints of PostgreSQL's tables that refer to themselves."""
        if self._connection.dialect.name != "postgresql":
            return
        quote = self._connection.dialect.identifier_preparer.quote
        for table in self._tables.values():
            for constraint in table.foreign_key_constraints:
                if constraint.referred_table is table and constraint.name is not None:
                    await self._connection.execute(
                        text(f"ALTER TABLE {quote(table.name)} ALTER CONSTRAINT {quote(str(constraint.name))} {how}")
                    )

    def _own(self, value: Any, kind: Any) -> Any:
        """A neutral value as this database's driver takes it."""
        if isinstance(value, datetime) and not (isinstance(kind, DateTime) and kind.timezone):
            return value.replace(tzinfo=None)
        return value


def _neutral(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return bytes(value) if isinstance(value, memoryview) else value


def encode_batch(batch: RowBatch) -> bytes:
    """The batch as lines of JSON: the columns, then each row. Pure."""
    lines = [batch.columns, *batch.rows]
    return b"".join(
        json.dumps(line, ensure_ascii=False, separators=(",", ":"), default=_tagged).encode() + b"\n" for line in lines
    )


def decode_batch(table: str, data: bytes, schema: Schema) -> RowBatch:
    """Read what ``encode_batch`` has written. Pure.

    Raises:
        DamagedArchive: it is something else, or the schema has no such table or column.
    """
    damaged = DamagedArchive(f"the rows of the table {table} are damaged")
    try:
        columns, *rows = (json.loads(line, object_hook=_untagged) for line in data.splitlines())
        unique = set(columns)
    except (ValueError, LookupError, TypeError, OverflowError, RecursionError):
        raise damaged from None
    if table not in schema or not unique <= schema[table] or len(unique) < len(columns):
        raise damaged
    if not all(isinstance(row, list) and len(row) == len(columns) and all(map(_is_plain, row)) for row in rows):
        raise damaged
    return RowBatch(table, columns, rows)


def _is_plain(value: Any) -> bool:
    """Whether it is a value that a database can hold."""
    if isinstance(value, str):
        return not _LONE_SURROGATE.search(value)
    if isinstance(value, int):
        return -_MOST_NUMBER - 1 <= value <= _MOST_NUMBER
    return isinstance(value, float | bytes | datetime | None)


def _tagged(value: Any) -> dict[str, str]:
    if isinstance(value, datetime):
        return {"time": value.isoformat()}
    return {"bytes": base64.b64encode(value).decode()}


def _untagged(tagged: dict[str, str]) -> Any:
    ((kind, value),) = tagged.items()
    if kind == "time":
        when = datetime.fromisoformat(value)
        if when.tzinfo is None:
            raise ValueError("a time without a zone")
        return when.astimezone(UTC)
    if kind == "bytes":
        return base64.b64decode(value, validate=True)
    raise ValueError(kind)
