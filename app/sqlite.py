"""An SQLite driver that executes a statement and fetches all rows in one trip to the connection's thread.

SQLAlchemy makes five trips: for a cursor, the statement, its rows, closing the cursor, and rolling back a transaction
that was never begun. Each takes longer than SQLite needs for a page's query.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

import aiosqlite
from sqlalchemy.connectors.asyncio import AsyncAdapt_dbapi_connection
from sqlalchemy.dialects.sqlite.aiosqlite import (
    AsyncAdapt_aiosqlite_connection,
    AsyncAdapt_aiosqlite_cursor,
    AsyncAdapt_aiosqlite_dbapi,
)
from sqlalchemy.util.concurrency import await_

_RETRY_INTERVAL_S = 0.01
"""Between attempts at an operation for which SQLite does not wait."""


class _SqliteCursor(AsyncAdapt_aiosqlite_cursor):
    """The result of an executed statement."""

    __slots__ = ("_found", "arraysize")

    _adapt_connection: _SqliteConnection

    def __init__(self, adapt_connection: AsyncAdapt_dbapi_connection) -> None:
        assert isinstance(adapt_connection, _SqliteConnection)
        self._adapt_connection = adapt_connection
        self._connection = adapt_connection._connection
        self._rows = deque()
        self._found: tuple[Any, int, int | None] = (None, -1, None)
        self.arraysize = 1

    @property
    def description(self) -> Any:
        return self._found[0]

    @property
    def rowcount(self) -> int:
        return self._found[1]

    @property
    def lastrowid(self) -> Any:
        return self._found[2]

    def execute(self, operation: Any, parameters: Any = None) -> None:
        self._ask(sqlite3.Connection.execute, operation, parameters or ())

    def executemany(self, operation: Any, seq_of_parameters: Any) -> None:
        self._ask(sqlite3.Connection.executemany, operation, seq_of_parameters)

    def close(self) -> None:
        self._rows.clear()

    async def _async_soft_close(self) -> None:
        """SQLite's own cursor was already closed after reading the rows."""

    def _ask(self, how: Callable[..., sqlite3.Cursor], operation: str, parameters: Any) -> None:
        adapted = self._adapt_connection
        adapted.begun = True  # if this is interrupted, the state is unknown
        try:
            rows, self._found, adapted.begun = await_(
                self._connection._execute(_execute_and_fetch, self._connection, how, operation, parameters)
            )
        except Exception as error:
            adapted._handle_exception(error)
        self._rows = deque(rows)


def _execute_and_fetch(
    connection: aiosqlite.Connection, how: Callable[..., sqlite3.Cursor], operation: str, parameters: Any
) -> tuple[list[Any], tuple[Any, int, int | None], bool]:
    """Runs in the connection's thread. Returns all rows, the cursor's data, and whether a transaction has begun."""
    cursor = how(connection._conn, operation, parameters)
    try:
        rows = cursor.fetchall() if cursor.description else []
        return rows, (cursor.description, cursor.rowcount, cursor.lastrowid), connection.in_transaction
    finally:
        cursor.close()


class _SqliteConnection(AsyncAdapt_aiosqlite_connection):
    """Ends a transaction only if one has begun; statements that only read do not begin one."""

    __slots__ = ("begun",)

    _cursor_cls = _SqliteCursor

    def __init__(self, dbapi: Any, connection: Any) -> None:
        super().__init__(dbapi, connection)
        self.begun = True

    def cursor(self, server_side: bool = False) -> Any:
        self.begun |= server_side  # a streaming cursor does not report it
        return super().cursor(server_side)

    def commit(self) -> None:
        if self.begun:
            super().commit()
            self.begun = False

    def rollback(self) -> None:
        if self.begun:
            super().rollback()
            self.begun = False


class SqliteReader:
    """One connection, outside SQLAlchemy's pool, for short SELECTs of many requests. Its thread takes them in turn.

    While it works off a few, the event loop's thread is not interrupted by each of them.
    """

    def __init__(self, file: str, wait_s: float, threads: WeakSet[threading.Thread]) -> None:
        """Its thread is added to ``threads``."""
        self._file = file
        self._wait_s = wait_s
        self._threads = threads
        self._connection: aiosqlite.Connection | None = None
        self._connecting: asyncio.Task[None] | None = None

    async def fetch(self, statement: str, parameters: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """All rows. Raises sqlite3.Error."""
        while self._connection is None:
            # All wait for one attempt, which goes on when they are cancelled: nobody else would close what it opens.
            self._connecting = self._connecting or asyncio.create_task(self._connect())
            await asyncio.shield(self._connecting)
        connection: Any = self._connection
        rows: list[tuple[Any, ...]]
        rows, _, _ = await connection._execute(
            _execute_and_fetch, connection, sqlite3.Connection.execute, statement, parameters
        )
        return rows

    async def close(self) -> None:
        if self._connecting is not None:
            await asyncio.wait([self._connecting])
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    async def _connect(self) -> None:
        try:
            made = aiosqlite.connect(self._file, timeout=self._wait_s, isolation_level=None)
            made._thread.daemon = True
            self._threads.add(made._thread)
            connection = await made
            await connection.execute("PRAGMA query_only=ON")
            self._connection = connection
        finally:
            self._connecting = None


async def enable_wal(connection: aiosqlite.Connection, wait_s: float) -> None:
    """Use a write-ahead log, so that readers and writers do not block each other.

    If another connection does this to a new file at the same time, SQLite fails at once instead of waiting.

    Raises:
        sqlite3.OperationalError: the file was locked for ``wait_s`` seconds, or cannot be written.
    """
    deadline = time.monotonic() + wait_s
    while True:
        try:
            async with connection.execute("PRAGMA journal_mode=WAL"):
                return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                raise
        await asyncio.sleep(_RETRY_INTERVAL_S)


class SqliteDriver(AsyncAdapt_aiosqlite_dbapi):
    """The driver, as the ``module`` argument of ``create_async_engine``."""

    def __init__(self) -> None:
        super().__init__(aiosqlite, sqlite3)

    def connect(self, *arg: Any, **kw: Any) -> _SqliteConnection:
        made = super().connect(*arg, **kw)
        return _SqliteConnection(self, made._connection)
