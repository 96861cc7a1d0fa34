"""What an error of the database means for the person whose request failed: too busy, its disk full, or away."""

from __future__ import annotations

import sqlite3

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.errors import StorageBusy, StorageDown, StorageFull

_BUSY_STATES = ("40001", "40P01", "53200", "53300", "55P03", "57014")
"""PostgreSQL's: conflicts, out of memory, too many connections, a lock or a statement that took too long."""
_DOWN_CLASSES = ("08", "57", "58")
"""PostgreSQL's classes of errors: no connection, shut down by its operator, trouble with its files."""
_READ_ONLY, _DISK_FULL = "25006", "53100"


def storage_problem(error: BaseException) -> type[StorageDown] | None:
    """What keeps the database from its work; None if the error is of another kind, such as a broken rule. Pure."""
    if isinstance(error, PoolTimeout):
        return StorageBusy
    if not isinstance(error, DBAPIError):
        return None
    if (code := getattr(error.orig, "sqlite_errorcode", None)) is not None:
        return _of_sqlite(code & 0xFF)  # the rest of an extended code says where it happened
    if state := getattr(error.orig, "sqlstate", None):
        return _of_postgresql(state)
    if isinstance(error.orig, TimeoutError):
        return StorageBusy
    return StorageDown if isinstance(error, OperationalError | InterfaceError) else None


def first_line(error: BaseException) -> str:
    """What an error says, without the statement that SQLAlchemy shows below it: for logs and ``/readyz``. Pure."""
    return (str(error).splitlines() or [type(error).__name__])[0][:300]


def _of_sqlite(code: int) -> type[StorageDown] | None:
    match code:
        case sqlite3.SQLITE_FULL:
            return StorageFull
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StorageBusy
        case sqlite3.SQLITE_IOERR | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CORRUPT:
            return StorageDown
        case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_PERM | sqlite3.SQLITE_NOLFS | sqlite3.SQLITE_PROTOCOL:
            return StorageDown
        case _:
            return None


def _of_postgresql(state: str) -> type[StorageDown] | None:
    if state == _DISK_FULL:
        return StorageFull
    if state in _BUSY_STATES:
        return StorageBusy
    return StorageDown if state == _READ_ONLY or state.startswith(_DOWN_CLASSES) else None
