"""The health of the database: classifies its errors, and remembers a failure until a write succeeds."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import shutil
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import structlog
from sqlalchemy.exc import DBAPIError, InterfaceError, InternalError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine

from app.errors import DatabaseBusy, DatabaseFull, DatabaseUnavailable

_BUSY_STATES = ("40001", "40P01", "53200", "53300", "55P03", "57014")
"""PostgreSQL's conditions: conflicts, out of memory, too many connections, a lock or statement that timed out."""
_DOWN_CLASSES = ("08", "57", "58")
"""PostgreSQL's error classes: no connection, operator intervention, system errors."""
_CONNECTION_ERRORS = (OperationalError, InterfaceError, InternalError)
"""Without a code: the driver lost the connection. The last is asyncpg's when it is lost between two of its steps."""
_READ_ONLY, _DISK_FULL = "25006", "53100"

_PROBE_INTERVAL_S = 1.0
_LOG_INTERVAL_S = 60.0
_PROBE_BYTES = 262_144
"""Bytes that a probe writes: more than the free space within the files of a full database."""
_MIN_FREE_BYTES = 1_048_576
"""If less is free, SQLite's generic I/O errors mean that the disk is full."""
_EXCEPTION_CLASS = re.compile(r"^\([\w.]+\) (<class '[\w.]+'>: )?")
"""The prefix that SQLAlchemy adds to a message: the class of the error."""

_log = structlog.get_logger("storage")


class DatabaseMonitor:
    """Remembers why a database cannot be written, from the first failure to the next success. One per ``Database``.

    Writes nothing while all is well. After a failure, ``problem`` tries to write, at most once a second, so that
    neither health checks nor a class that presses Run makes it worse. An outage is logged as one error, however many
    requests fail.
    """

    def __init__(self, try_to_write: Callable[[], Awaitable[None]], file: Path | None = None) -> None:
        """``file`` is SQLite's file. ``try_to_write`` raises the database's errors."""
        self._try_to_write = try_to_write
        self._file = file
        self._problem: type[DatabaseUnavailable] | None = None
        self._reason = ""
        self._told = False
        self._since = 0.0
        self._tried_at = float("-inf")
        self._logged_at: dict[type[DatabaseUnavailable], float] = {}
        self._one_at_a_time = asyncio.Lock()

    @property
    def failing(self) -> bool:
        """Whether the database failed and no write has succeeded since."""
        return self._problem is not None

    @property
    def reason(self) -> str:
        """The database's last error message, for operators."""
        return self._reason

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Note a database error that leaves this block."""
        try:
            yield
        except SQLAlchemyError as e:
            self.note(e)
            raise

    def note(self, error: SQLAlchemyError) -> None:
        """Remember why the database cannot be written. Being busy is temporary, so that is only logged."""
        problem = classify_database_error(error)
        if problem is None:
            return
        if problem is DatabaseUnavailable and self._disk_is_full():
            problem = DatabaseFull
        if problem is DatabaseBusy:
            if self._may_log(problem):
                _log.warning("the database is too busy", reason=first_line(error))
            return
        self._reason = first_line(error)
        if self._problem is None:
            self._since = time.monotonic()
        if self._problem is not DatabaseFull and self._problem is not problem:
            self._problem = problem
            self._told = self._may_log(problem)
            if self._told:
                full = "writing to the database fails: its disk is full"
                _log.error(full if problem is DatabaseFull else "the database is not working", reason=self._reason)

    async def problem(self) -> type[DatabaseUnavailable] | None:
        """Why the database cannot be written now, or None. After a failure, tries to write again."""
        if self._problem is not None:
            async with self._one_at_a_time:
                await self._try_again()
        return self._problem

    async def check(self) -> None:
        """Raise the reason why the database cannot be written, such as DatabaseFull."""
        if (problem := await self.problem()) is not None:
            raise problem

    async def _try_again(self) -> None:
        if self._problem is None or time.monotonic() - self._tried_at < _PROBE_INTERVAL_S:
            return
        try:
            await self._try_to_write()
        except SQLAlchemyError as e:
            self.note(e)
        else:
            if self._told:
                outage_s = round(time.monotonic() - self._since, 1)
                _log.warning("the database works again", outage_s=outage_s, after=self._problem.code)
            self._problem, self._reason = None, ""
        self._tried_at = time.monotonic()

    def _may_log(self, problem: type[DatabaseUnavailable]) -> bool:
        at = time.monotonic()
        if at - self._logged_at.get(problem, float("-inf")) < _LOG_INTERVAL_S:
            return False
        self._logged_at[problem] = at
        return True

    def _disk_is_full(self) -> bool:
        try:
            return self._file is not None and shutil.disk_usage(self._file.parent).free < _MIN_FREE_BYTES
        except OSError:
            return False


async def probe_write(engine: AsyncEngine) -> None:
    """Make the database write data that needs new disk space, then remove it. Raises the database's errors."""
    table = f"storage_probe_{secrets.token_hex(4)}"
    sqlite = engine.dialect.name == "sqlite"
    async with engine.connect() as connection:
        try:
            if sqlite:  # a cache this small makes it write to disk before the transaction ends
                await connection.exec_driver_sql("PRAGMA cache_size = 10")
                await connection.exec_driver_sql("BEGIN IMMEDIATE")
            await connection.exec_driver_sql(f"CREATE TABLE {table} (filler {'BLOB' if sqlite else 'BYTEA'})")
            insert = f"INSERT INTO {table} VALUES ({'?' if sqlite else '$1'})"  # noqa: S608 - the name is our own
            await connection.exec_driver_sql(insert, (os.urandom(_PROBE_BYTES),))
        finally:
            await connection.rollback()
            if sqlite:
                await connection.exec_driver_sql("PRAGMA cache_size = -2000")


def classify_database_error(error: BaseException) -> type[DatabaseUnavailable] | None:
    """Why the database cannot work; None for other errors, such as a violated constraint. Pure."""
    if isinstance(error, PoolTimeout):
        return DatabaseBusy
    if not isinstance(error, DBAPIError):
        return None
    if (code := getattr(error.orig, "sqlite_errorcode", None)) is not None:
        return _classify_sqlite_code(code & 0xFF)  # the high bits of an extended code only give details
    if state := getattr(error.orig, "sqlstate", None):
        return _classify_sqlstate(state)
    if isinstance(error.orig, TimeoutError):
        return DatabaseBusy
    return DatabaseUnavailable if isinstance(error, _CONNECTION_ERRORS) else None


def log_failure(log: Any, event: str, error: BaseException, **facts: object) -> None:
    """Log an error with its traceback, unless a ``DatabaseMonitor`` has already reported it."""
    if classify_database_error(error) is None:
        log.exception(event, **facts)
    else:
        log.debug(event, reason=first_line(error), **facts)


def first_line(error: BaseException) -> str:
    """The message of an error without the SQL that SQLAlchemy appends, for logs and ``/readyz``. Pure."""
    return (str(error).splitlines() or [type(error).__name__])[0][:300]


def driver_message(error: BaseException) -> str:
    """The message of the database itself, without the class of the error, for commands. Pure."""
    return _EXCEPTION_CLASS.sub("", first_line(error))


def _classify_sqlite_code(code: int) -> type[DatabaseUnavailable] | None:
    match code:
        case sqlite3.SQLITE_FULL:
            return DatabaseFull
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return DatabaseBusy
        case sqlite3.SQLITE_IOERR | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CORRUPT:
            return DatabaseUnavailable
        case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_PERM | sqlite3.SQLITE_NOLFS | sqlite3.SQLITE_PROTOCOL:
            return DatabaseUnavailable
        case _:
            return None


def _classify_sqlstate(state: str) -> type[DatabaseUnavailable] | None:
    if state == _DISK_FULL:
        return DatabaseFull
    if state in _BUSY_STATES:
        return DatabaseBusy
    return DatabaseUnavailable if state == _READ_ONLY or state.startswith(_DOWN_CLASSES) else None
