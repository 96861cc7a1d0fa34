"""The database: one async engine, short sessions, and a naming convention for constraints.

Services flush and routes commit: a route commits after it has called its service.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
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
from app.direct_read import raising_sqlalchemy_errors, read_directly
from app.silence_watch import SilenceWatch
from app.sqlite import SqliteDriver, SqliteReader, enable_wal
from app.topic_messages import TopicSender

T = TypeVar("T")
POOL_SIZE = 15
"""Connections per process. They stay open: an SQLite connection has a thread and a few prepared statements."""

POOL_TIMEOUT_S = 10.0
"""Seconds to wait for a connection, or in SQLite for another writer."""

_CLOSE_TIMEOUT_S = 20
"""Seconds to wait for the thread of an SQLite connection that is being closed."""

_FETCH_SIZE = 100
"""Rows that a cursor fetches at a time."""

WITHOUT_PREPARED_STATEMENTS: dict[str, Any] = {
    "statement_cache_size": 0,
    "prepared_statement_cache_size": 0,
    "prepared_statement_name_func": lambda: f"__lockstep_{secrets.token_hex(8)}__",
}
"""asyncpg's and SQLAlchemy's options. asyncpg prepares each statement all the same, under a name of its own."""

_PRAGMAS = ("synchronous=NORMAL", "foreign_keys=ON")


class Base(DeclarativeBase):
    """The base class of all tables. Relationships use ``lazy="raise"``, so pages must load what they need."""

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
    """A point in time, always UTC and timezone-aware, even in SQLite."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a datetime needs a time zone")
        value = value.astimezone(UTC)
        return value.replace(tzinfo=None) if dialect.name == "sqlite" else value

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return value.replace(tzinfo=UTC) if value is not None and value.tzinfo is None else value


class Database:
    """The engine and its sessions. A task must not hold two sessions: with a full pool, it would wait for itself.

    ``connections`` is the size of the pool. ``wait_s`` is how many seconds to wait for a connection, for PostgreSQL to
    accept it, and for the turn to write to SQLite; after that, SQLAlchemy's ``TimeoutError`` or an
    ``OperationalError`` is raised. ``statement_s`` limits a statement of PostgreSQL; None means no limit, as migrations
    need. ``pooled`` is true if the URL leads to a pooler in transaction mode, such as PgBouncer. Sessions publish to
    ``bus`` (see ``publish_on_commit``), and with PostgreSQL to the web processes that listen (``app.topic_relay``).
    """

    def __init__(
        self,
        url: str,
        *,
        connections: int = POOL_SIZE,
        wait_s: float = POOL_TIMEOUT_S,
        statement_s: float | None = None,
        pooled: bool = False,
        bus: Bus | None = None,
    ) -> None:
        self.url = url
        self.bus = bus or Bus()
        self._wait_s = wait_s
        self._pooled = pooled
        self._threads: WeakSet[threading.Thread] = WeakSet()
        sqlite = make_url(url).get_backend_name() == "sqlite"
        # A pooler answers for itself, or not at all while all its connections are in use: that says nothing.
        self._silence = None if sqlite or pooled else SilenceWatch(url)
        self.engine = (
            _sqlite_engine(url, connections, wait_s, self._threads)
            if sqlite
            else _postgresql_engine(url, connections, wait_s, statement_s, self._silence)
        )
        sync_sessions = sessionmaker()
        publish_commits(sync_sessions, self.bus, None if sqlite else TopicSender(self.bus.id))
        self._sessions = async_sessionmaker(self.engine, sync_session_class=sync_sessions, expire_on_commit=False)
        # SQLite has one writer at a time; a fair queue in the process is faster than SQLite's polling.
        self._writer = asyncio.Lock() if sqlite else None
        file = self.file()
        self._reader = SqliteReader(str(file), wait_s, self._threads) if file else None
        self.health = DatabaseMonitor(self._try_to_write, file)

    @asynccontextmanager
    async def session(self) -> AsyncIterator[AsyncSession]:
        """A session. Commit it yourself; otherwise, it rolls back."""
        with self._watching():
            async with self._sessions() as session:
                yield session

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncSession]:
        """A short session for writing, committed at the end of the block."""
        with self._watching():
            async with self._turn_to_write(), self._sessions() as session:
                yield session
                await session.commit()

    @contextmanager
    def _watching(self) -> Iterator[None]:
        with self.health.watching(), self._silence.watching() if self._silence else nullcontext():
            yield

    async def read(self, statement: str, parameters: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """The rows of a short SELECT in the driver's own SQL: one trip to the database, without a session.

        A pooler needs a transaction, and tracing watches SQLAlchemy's cursors, so then a session reads it.
        """
        if self._pooled or self.engine.sync_engine.dispatch.before_cursor_execute:
            async with self.session() as session:
                found = await (await session.connection()).exec_driver_sql(statement, parameters)
                return [tuple(row) for row in found]
        with self._watching():
            if self._reader is None:
                return await read_directly(self.engine, statement, parameters)
            with raising_sqlalchemy_errors(self.engine.dialect, statement):
                return await self._reader.fetch(statement, parameters)

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
            raise PoolTimeout(f"other transactions have been writing for {self._wait_s:g} s") from e
        try:
            yield
        finally:
            self._writer.release()

    def file(self) -> Path | None:
        """SQLite's file; None for other databases."""
        url = self.engine.url
        return Path(url.database) if self.engine.dialect.name == "sqlite" and url.database else None

    async def size_bytes(self) -> int:
        """How much disk space the database takes."""
        if (file := self.file()) is not None:
            return sum(part.stat().st_size for part in (file, file.with_name(f"{file.name}-wal")) if part.exists())
        async with self.session() as session:
            return int(await session.scalar(select(func.pg_database_size(func.current_database()))) or 0)

    async def close(self) -> None:
        """Close all connections and wait for SQLite's threads, so that none of them uses a closed event loop."""
        if self._silence:
            await self._silence.close()
        if self._reader is not None:
            await self._reader.close()
        await self.engine.dispose()
        for thread in [t for t in threading.enumerate() if t in self._threads]:
            await asyncio.to_thread(thread.join, _CLOSE_TIMEOUT_S)


async def advisory_lock(session: AsyncSession, name: str) -> None:
    """Lock this name until the transaction ends.

    SQLite does not need it: it has one writer at a time, from a transaction's first write on.
    """
    if session.get_bind().dialect.name == "postgresql":
        await session.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(name, 0))))


async def try_advisory_lock(session: AsyncSession, name: str) -> bool:
    """Lock this name until the transaction ends, unless another one has it. With SQLite, always True."""
    if session.get_bind().dialect.name != "postgresql":
        return True
    return bool(await session.scalar(select(func.pg_try_advisory_xact_lock(func.hashtextextended(name, 0)))))


async def delete_batch(session: AsyncSession, table: type[Base], most: int, *which: ColumnElement[bool]) -> int:
    """Delete at most ``most`` rows. Returns how many were deleted: fewer than ``most`` means that none are left."""
    key = table.__mapper__.primary_key
    named = tuple_(*key) if len(key) > 1 else key[0]
    some = delete(table).where(named.in_(select(*key).where(*which).limit(most)))
    gone = await session.execute(some.execution_options(synchronize_session=False))
    return cast(CursorResult[Any], gone).rowcount


def dialect_insert(session: AsyncSession, table: type[Base]) -> postgresql.Insert | sqlite.Insert:
    """The INSERT of the session's dialect, with ``on_conflict_do_nothing`` and ``on_conflict_do_update``."""
    insert = postgresql.insert if session.get_bind().dialect.name == "postgresql" else sqlite.insert
    return insert(table)


async def stream_scalars(session: AsyncSession, query: Select[T]) -> AsyncIterator[T]:
    """The results of a query one by one from a server-side cursor: only a few are in memory at a time."""
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


def _postgresql_engine(
    url: str, connections: int, wait_s: float, statement_s: float | None, silence: SilenceWatch | None
) -> AsyncEngine:
    """An engine whose connections are closed when the server is silent. Without a watch, for a pooler."""
    connect_args: dict[str, Any] = {"timeout": wait_s, "command_timeout": statement_s}
    if silence is None:  # each transaction may get another connection of PostgreSQL, with other prepared statements
        connect_args |= WITHOUT_PREPARED_STATEMENTS
    engine = create_async_engine(
        url,
        connect_args=connect_args,
        pool_size=connections,
        max_overflow=0,
        pool_timeout=wait_s,
        pool_pre_ping=True,
    )

    @event.listens_for(engine.sync_engine, "do_connect")
    def _connect(dialect: Dialect, _record: object, args: Any, options: Any) -> Any:
        if silence:
            silence.check()
        try:
            connection: Any = dialect.connect(*args, **options)
            if silence:
                silence.add(connection.driver_connection)
            return connection
        except OSError as e:  # asyncpg raises network errors unchanged, including timeouts
            raise dialect.loaded_dbapi.OperationalError(f"no connection: {str(e) or type(e).__name__}") from e

    @event.listens_for(engine.sync_engine, "handle_error", retval=True)
    def _translate(context: ExceptionContext) -> BaseException | None:
        error = context.original_exception
        if not isinstance(error, OSError):
            return None
        context.is_disconnect = True  # the connection's state is unknown
        return OperationalError(context.statement, None, error)

    return engine


def now() -> datetime:
    """The current time, in UTC."""
    return datetime.now(UTC)


def sortable_id() -> str:
    """A new ID that sorts after all earlier ones; lists are ordered by it."""
    return f"{time.time_ns() // 1_000:014x}{secrets.token_hex(8)}"
