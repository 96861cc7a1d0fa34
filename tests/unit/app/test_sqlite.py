from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiosqlite
import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError, OperationalError
from sqlalchemy.ext.asyncio import AsyncSession

from app.db import Database

SLOW = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000000) SELECT max(i) FROM n"


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[Database]:
    database = Database(f"sqlite+aiosqlite:///{tmp_path / 'one.db'}")
    async with database.writing() as session:
        await session.execute(text("CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT UNIQUE)"))
    yield database
    await database.close()


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is asked of a connection's thread."""
    made: list[str] = []
    execute: Any = aiosqlite.Connection._execute

    async def counted(self: aiosqlite.Connection, fn: Any, *args: Any, **kwargs: Any) -> Any:
        made.append(fn.__name__)
        return await execute(self, fn, *args, **kwargs)

    monkeypatch.setattr(aiosqlite.Connection, "_execute", counted)
    return made


async def names(session: AsyncSession) -> list[str]:
    return list(await session.scalars(text("SELECT name FROM things ORDER BY id")))


async def test_a_statement_that_reads_takes_one_trip(db: Database, trips: list[str]) -> None:
    async with db.session() as session:
        assert await names(session) == []
        assert await names(session) == []

    assert len(trips) == 2


async def test_a_transaction_that_was_begun_is_ended(db: Database, trips: list[str]) -> None:
    async with db.session() as session:
        await session.execute(text("INSERT INTO things (name) VALUES ('one')"))
    assert trips[-1] == "rollback"
    async with db.session() as session:
        await session.execute(text("INSERT INTO things (name) VALUES ('two')"))
        await session.commit()
    assert trips[-1] == "commit"

    async with db.session() as session:
        assert await names(session) == ["two"]


async def test_what_was_written_is_told(db: Database) -> None:
    async with db.writing() as session:
        made = await session.execute(text("INSERT INTO things (name) VALUES ('one'), ('two') RETURNING id, name"))
        assert [(row.id, row.name) for row in made] == [(1, "one"), (2, "two")]
        changed = await session.execute(text("UPDATE things SET name = name || '!'"))
        assert changed.rowcount == 2  # type: ignore[attr-defined]
        many = [{"name": "three"}, {"name": "four"}]
        await session.execute(text("INSERT INTO things (name) VALUES (:name)"), many)

    async with db.session() as session:
        assert await names(session) == ["one!", "two!", "three", "four"]


async def test_a_long_answer_can_be_read_step_by_step(db: Database) -> None:
    async with db.session() as session:
        found = await session.stream(text("SELECT 1 UNION SELECT 2 UNION SELECT 3"))
        assert [row[0] async for row in found] == [1, 2, 3]


async def test_database_errors_are_reported_as_before(db: Database) -> None:
    async with db.session() as session:
        await session.execute(text("INSERT INTO things (name) VALUES ('one')"))
        with pytest.raises(IntegrityError):
            await session.execute(text("INSERT INTO things (name) VALUES ('one')"))
    async with db.session() as session:
        with pytest.raises(OperationalError):
            await session.execute(text("SELECT nothing"))
        assert await names(session) == []


async def test_a_write_that_was_broken_off_leaves_no_transaction_open(db: Database) -> None:
    async def write() -> None:
        async with db.session() as session:
            await session.execute(text(f"INSERT INTO things (name) {SLOW}"))

    writing = asyncio.create_task(write())
    await asyncio.sleep(0.05)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing

    async with asyncio.timeout(10), db.writing() as session:
        await session.execute(text("INSERT INTO things (name) VALUES ('mine')"))
    async with db.session() as session:
        assert await names(session) == ["mine"]


async def test_more_sessions_than_connections_wait_for_their_turn(db: Database) -> None:
    async def one(number: int) -> None:
        async with db.writing() as session:
            await session.execute(text("INSERT INTO things (id) VALUES (:id)"), {"id": number})

    await asyncio.gather(*(one(number) for number in range(60)))

    async with db.session() as session:
        assert await session.scalar(text("SELECT count(*) FROM things")) == 60


async def test_whoever_opens_a_new_file_at_the_same_time_waits_for_the_other(tmp_path: Path) -> None:
    for number in range(25):  # without the wait 3 in 100 were refused
        servers = [Database(f"sqlite+aiosqlite:///{tmp_path / str(number)}") for _ in range(4)]

        modes = await asyncio.gather(*(_journal_mode(server) for server in servers))

        assert modes == ["wal"] * 4
        for server in servers:
            await server.close()


async def _journal_mode(db: Database) -> str | None:
    async with db.engine.connect() as connection:
        mode: str | None = await connection.scalar(text("PRAGMA journal_mode"))
        return mode
