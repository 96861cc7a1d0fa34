"""The database: one async engine, short sessions, names by convention.

Services flush, the edge commits: a route that has called its service commits before it answers.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar, cast
from weakref import WeakSet

from sqlalchemy import (
    ColumnElement,
    CursorResult,
    DateTime,
    Dialect,
    MetaData,
    Select,
    TypeDecorator,
    delete,
    event,
    func,
    select,
    tuple_,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import ExceptionContext, make_url
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, sessionmaker

from app.bus import Bus, publish_commits
from app.database_health import DatabaseMonitor, probe_write
from app.sqlite import SqliteDriver, enable_wal

T = TypeVar("T")
POOL_SIZE = 15
"""Connections of one process. They stay open: one to SQLite has its thread and a few prepared statements."""

POOL_TIMEOUT_S = 10.0
"""Seconds to wait for a connection, or in SQLite for another writer."""

_CLOSE_TIMEOUT_S = 20
"""Seconds to wait for the thread of a connection to SQLite that is closed."""

_FETCH_SIZE = 100
"""Rows that a cursor hands over at a time."""

_PRAGMAS = ("synchronous=NORMAL", "foreign_keys=ON")


class Base(DeclarativeBase):
    """The parent of every table. Relationships are declared with ``lazy="raise"``: what a page needs is asked for."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


class UtcDateTime(TypeDecorator[datetime]):
    """A point in time, always UTC and aware, in SQLite too."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a moment needs a time zone")
        value = value.astimezone(UTC)
        return value.replace(tzinfo=None) if dialect.name == "sqlite" else value

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return value.replace(tzinfo=UTC) if value is not None and value.tzinfo is None else value


class Database:
    """The engine and its sessions. A task holds one session at a time: with two, a full pool waits for itself.

    ``connections`` bounds the pool, and ``wait_s`` the seconds to wait for one of them, for PostgreSQL to accept it,
    and for the turn to write to SQLite; then SQLAlchemy's ``TimeoutError`` or an ``OperationalError`` is raised.
    ``statement_s`` bounds one statement of PostgreSQL; None for no limit, as migrations need. What a session publishes
    with ``publish_on_commit`` goes to ``bus``.
    """

    def __init__(
        self,
        url: str,
        *,
        connections: int = POOL_SIZE,
        wait_s: float = POOL_TIMEOUT_S,
        statement_s: float | None = None,
        bus: Bus | None = None,
    ) -> None:
        self.url = url
        self.bus = bus or Bus()
        self._wait_s = wait_s
        self._threads: WeakSet[threading.Thread] = WeakSet()
        self.engine = (
            _sqlite_engine(url, connections, wait_s, self._threads)
            if make_url(url).get_backend_name() == "sqlite"
            else _postgresql_engine(url, connections, wait_s, statement_s)
        )
        sync_sessions = sessionmaker()
        publish_commits(sync_sessions, self.bus)
        self._sessions = async_sessionmaker(self.engine, sync_session_class=sync_sessions, expire_on_commit=False)
        # SQLite has one writer at a time; a fair queue in the process is quicker than its busy-wait.
        self._writer = asyncio.Lock() if self.engine.dialect.name == "sqlite" else None
        self.storage = DatabaseMonitor(self._try_to_write, self.file())

    @asynccontextmanager
    async def session(self) -> AsyncIterator[AsyncSession]:
        """A session; commit it yourself, otherwise it rolls back."""
        with self.storage.watching():
            async with self._sessions() as session:
                yield session

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncSession]:
        """A short session that only writes, committed at the end of the block."""
        with self.storage.watching():
            async with self._turn_to_write(), self._sessions() as session:
                yield session
                await session.commit()

    async def _try_to_write(self) -> None:
        async with self._turn_to_write():
            await probe_write(self.engine)

    @asynccontextmanager
    async def _turn_to_write(self) -> AsyncIterator[None]:
        if self._writer is None:
            yield
            return
        try:
            async with asyncio.timeout(self._wait_s):
                await self._writer.acquire()
        except TimeoutError as e:
            raise PoolTimeout(f"others have been writing for {self._wait_s:g} s") from e
        try:
            yield
        finally:
            self._writer.release()

    def file(self) -> Path | None:
        """Where SQLite keeps it; None for a database elsewhere."""
        url = self.engine.url
        return Path(url.database) if self.engine.dialect.name == "sqlite" and url.database else None

    async def close(self) -> None:
        """Drop the connections, and wait for SQLite's threads: one still at work would speak to a closed loop."""
        await self.engine.dispose()
        for thread in [t for t in threading.enumerate() if t in self._threads]:
            await asyncio.to_thread(thread.join, _CLOSE_TIMEOUT_S)


async def advisory_lock(session: AsyncSession, name: str) -> None:
    """From here to the end of the transaction nobody else works under this name.

    SQLite has one writer at a time as it is: from a transaction's first write on.
    """
    if session.get_bind().dialect.name == "postgresql":
        await session.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(name, 0))))


async def delete_batch(session: AsyncSession, table: type[Base], most: int, *which: ColumnElement[bool]) -> int:
    """Delete rows, but not more than ``most``. Returns how many there were: fewer than ``most`` means all."""
    key = table.__mapper__.primary_key
    named = tuple_(*key) if len(key) > 1 else key[0]
    some = delete(table).where(named.in_(select(*key).where(*which).limit(most)))
    gone = await session.execute(some.execution_options(synchronize_session=False))
    return cast(CursorResult[Any], gone).rowcount


def dialect_insert(session: AsyncSession, table: type[Base]) -> postgresql.Insert | sqlite.Insert:
    """An INSERT as the session's database has it, with ``on_conflict_do_nothing`` and ``on_conflict_do_update``."""
    insert = postgresql.insert if session.get_bind().dialect.name == "postgresql" else sqlite.insert
    return insert(table)


async def stream_scalars(session: AsyncSession, query: Select[T]) -> AsyncIterator[T]:
    """What a query finds, one by one, from a cursor of the server: however many there are, a few are in memory."""
    async for one in await session.stream_scalars(query.execution_options(yield_per=_FETCH_SIZE)):
        yield one


def _sqlite_engine(url: str, connections: int, wait_s: float, threads: WeakSet[threading.Thread]) -> AsyncEngine:
    """An engine whose connections add their threads to ``threads``."""
    engine = create_async_engine(
        url,
        module=SqliteDriver(),
        connect_args={"timeout": wait_s},
        pool_size=connections,
        max_overflow=0,
        pool_timeout=wait_s,
        pool_use_lifo=True,
    )

    @event.listens_for(engine.sync_engine, "connect")
    def _set_up(connection: Any, _record: object) -> None:
        threads.add(connection.driver_connection._thread)
        connection.run_async(lambda driver: enable_wal(driver, wait_s))
        cursor = connection.cursor()
        for pragma in _PRAGMAS:
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    return engine


def _postgresql_engine(url: str, connections: int, wait_s: float, statement_s: float | None) -> AsyncEngine:
    engine = create_async_engine(
        url,
        connect_args={"timeout": wait_s, "command_timeout": statement_s},
        pool_size=connections,
        max_overflow=0,
        pool_timeout=wait_s,
        pool_pre_ping=True,
    )

    @event.listens_for(engine.sync_engine, "do_connect")
    def _connect(dialect: Dialect, _record: object, args: Any, options: Any) -> Any:
        try:
            return dialect.connect(*args, **options)
        except OSError as e:  # asyncpg lets through what the network says, a time-out too
            raise dialect.loaded_dbapi.OperationalError(f"no connection: {e or type(e).__name__}") from e

    @event.listens_for(engine.sync_engine, "handle_error", retval=True)
    def _translate(context: ExceptionContext) -> BaseException | None:
        error = context.original_exception
        if not isinstance(error, OSError):
            return None
        context.is_disconnect = True  # nobody knows what it still has to say
        return OperationalError(context.statement, None, error)

    return engine


def now() -> datetime:
    """This moment, in UTC."""
    return datetime.now(UTC)


def sortable_id() -> str:
    """A new id that sorts behind those made before it: lists go by it."""
    return f"{time.time_ns() // 1_000:014x}{secrets.token_hex(8)}"
