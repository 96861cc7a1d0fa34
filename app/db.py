"""The database: one async engine, short sessions, names by convention.

Services flush, the edge commits: a route that has called its service commits before it answers.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
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
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase

from app.sqlite import Driver

T = TypeVar("T")
_BUSY_S = 20
"""How long a writer of SQLite waits for another one."""

_KEPT = 15
"""Connections to SQLite that are kept: each has its thread and a few prepared statements, and is not made anew."""

_AT_ONCE = 100
"""Rows that a cursor hands over at a time."""

_PRAGMAS = ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON", f"busy_timeout={_BUSY_S * 1000}")


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


class Moment(TypeDecorator[datetime]):
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
    """The engine and its sessions."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._threads: WeakSet[threading.Thread] = WeakSet()
        self.engine = make_engine(url, self._threads)
        self._sessions = async_sessionmaker(self.engine, expire_on_commit=False)
        # SQLite has one writer at a time; a fair queue in the process is quicker than its busy-wait.
        self._writer = asyncio.Lock() if self.engine.dialect.name == "sqlite" else None

    @asynccontextmanager
    async def session(self) -> AsyncIterator[AsyncSession]:
        """A session; commit it yourself, otherwise it rolls back."""
        async with self._sessions() as session:
            yield session

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncSession]:
        """A short session that only writes, committed at the end of the block."""
        async with AsyncExitStack() as stack:
            if self._writer is not None:
                await stack.enter_async_context(self._writer)
            session = await stack.enter_async_context(self._sessions())
            yield session
            await session.commit()

    def file(self) -> Path | None:
        """Where SQLite keeps it; None for a database elsewhere."""
        url = self.engine.url
        return Path(url.database) if self.engine.dialect.name == "sqlite" and url.database else None

    async def close(self) -> None:
        """Drop the connections, and wait for SQLite's threads: one still at work would speak to a closed loop."""
        await self.engine.dispose()
        for thread in [t for t in threading.enumerate() if t in self._threads]:
            await asyncio.to_thread(thread.join, _BUSY_S)


async def one_at_a_time(session: AsyncSession, name: str) -> None:
    """From here to the end of the transaction nobody else works under this name.

    SQLite has one writer at a time as it is: from a transaction's first write on.
    """
    if session.get_bind().dialect.name == "postgresql":
        await session.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(name, 0))))


async def delete_some(session: AsyncSession, table: type[Base], most: int, *which: ColumnElement[bool]) -> int:
    """Delete rows, but not more than ``most``. Returns how many there were: fewer than ``most`` means all."""
    key = table.__mapper__.primary_key
    named = tuple_(*key) if len(key) > 1 else key[0]
    some = delete(table).where(named.in_(select(*key).where(*which).limit(most)))
    gone = await session.execute(some.execution_options(synchronize_session=False))
    return cast(CursorResult[Any], gone).rowcount


def insert_into(session: AsyncSession, table: type[Base]) -> postgresql.Insert | sqlite.Insert:
    """An INSERT as the session's database has it, with ``on_conflict_do_nothing`` and ``on_conflict_do_update``."""
    insert = postgresql.insert if session.get_bind().dialect.name == "postgresql" else sqlite.insert
    return insert(table)


async def each(session: AsyncSession, query: Select[T]) -> AsyncIterator[T]:
    """What a query finds, one by one, from a cursor of the server: however many there are, a few are in memory."""
    async for one in await session.stream_scalars(query.execution_options(yield_per=_AT_ONCE)):
        yield one


def make_engine(url: str, threads: WeakSet[threading.Thread] | None = None) -> AsyncEngine:
    """An engine for SQLite or PostgreSQL, as Lockstep wants it. SQLite's connections add theirs to ``threads``."""
    if make_url(url).get_backend_name() != "sqlite":
        return create_async_engine(url, pool_pre_ping=True)
    engine = create_async_engine(
        url, module=Driver(), connect_args={"timeout": _BUSY_S}, pool_size=_KEPT, max_overflow=0, pool_use_lifo=True
    )

    @event.listens_for(engine.sync_engine, "connect")
    def _set_up(connection: Any, _record: object) -> None:
        if threads is not None:
            threads.add(connection.driver_connection._thread)
        cursor = connection.cursor()
        for pragma in _PRAGMAS:
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    return engine


def now() -> datetime:
    """This moment, in UTC."""
    return datetime.now(UTC)


def growing_id() -> str:
    """A new id that sorts behind those made before it: lists go by it."""
    return f"{time.time_ns() // 1_000:014x}{secrets.token_hex(8)}"
