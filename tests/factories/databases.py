"""Databases for tests: SQLite always, PostgreSQL where ``LOCKSTEP_TEST_POSTGRES_URL`` names a server.

On that server each test process, such as a worker of pytest-xdist, makes databases of its own: many may run at once.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import URL, make_url, text
from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg
from sqlalchemy.dialects.sqlite.aiosqlite import SQLiteDialect_aiosqlite
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from app.db import Database
from app.tables import TABLES

BACKENDS = ("sqlite", "postgresql")
POSTGRES = "LOCKSTEP_TEST_POSTGRES_URL"


def mainly_on(backend: str, fixture: str = "database_url") -> pytest.MarkDecorator:
    """Run on this database in the main tier, and on the other one in the long tests too.

    For what the database hardly matters to, where a test takes seconds.
    """
    cases = [name if name == backend else pytest.param(name, marks=pytest.mark.long) for name in BACKENDS]
    return pytest.mark.parametrize(fixture, cases, indirect=True)


def unique_name(purpose: str) -> str:
    """A name on the server that no other process uses."""
    return f"lockstep_{purpose}_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}_{secrets.token_hex(6)}"


def server_url() -> URL:
    """The URL of the server. Skips the test if there is none."""
    url = os.environ.get(POSTGRES, "")
    if not url:
        pytest.skip(f"{POSTGRES} is not set")
    return make_url(url)


async def ask_server(statement: str, url: str | None = None) -> str:
    """Run a statement outside a transaction, as creating a database requires. Returns the first value, if any.

    The server is that of ``url``, or the one that the tests share.
    """
    server = create_async_engine(url or server_url(), isolation_level="AUTOCOMMIT")
    try:
        async with server.connect() as connection:
            answer = await connection.execute(text(statement))
            return str(answer.scalar()) if answer.returns_rows else ""
    finally:
        await server.dispose()


@contextmanager
def postgresql_database(template: str | None = None) -> Iterator[str]:
    """The URL of an empty PostgreSQL database, or of a copy of one that nobody has open. It is dropped at the end.

    Skips the test if there is no server.
    """
    name = unique_name("test")
    original = f" TEMPLATE {make_url(template).database}" if template else ""
    asyncio.run(ask_server(f"CREATE DATABASE {name}{original}"))
    try:
        yield server_url().set(database=name).render_as_string(hide_password=False)
    finally:
        asyncio.run(ask_server(f"DROP DATABASE {name} WITH (FORCE)"))


def share_compiled_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile each statement once per process, and not again for the engine of every test.

    What SQLAlchemy compiles depends on the kind of dialect only, as long as all servers have the same version.
    """
    compiled: dict[Any, Any] = {}

    def create(*arguments: Any, **options: Any) -> AsyncEngine:
        engine = create_async_engine(*arguments, **options)
        engine.sync_engine._compiled_cache = compiled
        return engine

    # Its keys, and those of what the mappers have compiled, contain the dialect.
    for kind in (PGDialect_asyncpg, SQLiteDialect_aiosqlite):
        monkeypatch.setattr(kind, "__hash__", lambda dialect: hash(type(dialect)))
        monkeypatch.setattr(kind, "__eq__", lambda dialect, other: type(dialect) is type(other))
    monkeypatch.setattr("app.db.create_async_engine", create)


async def drop_tables(url: str) -> None:
    """Drop every table of a PostgreSQL database."""
    db = Database(url)
    async with db.engine.begin() as connection:
        await connection.execute(text("DROP SCHEMA public CASCADE"))
        await connection.execute(text("CREATE SCHEMA public"))
    await db.close()


async def delete_rows(db: Database) -> None:
    """Empty every table of a migrated database of PostgreSQL.

    One statement of a few milliseconds; ``TRUNCATE``, or a new database from a template, takes 20 times as long.
    """
    statements = " ".join(f"DELETE FROM {table.name};" for table in reversed(TABLES))
    async with db.engine.begin() as connection:
        await connection.execute(text(f"DO $$ BEGIN {statements} END $$"))
