"""What errors of real databases mean."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.db import Database
from app.errors import StorageBusy, StorageDown, StorageFull
from app.storage import storage_problem


def of_postgresql(state: str) -> DBAPIError:
    error = Exception("what PostgreSQL said")
    error.sqlstate = state  # type: ignore[attr-defined]
    return DBAPIError("INSERT", {}, error)


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (of_postgresql("53100"), StorageFull),
        (of_postgresql("53300"), StorageBusy),
        (of_postgresql("57014"), StorageBusy),
        (of_postgresql("57P03"), StorageDown),
        (of_postgresql("08006"), StorageDown),
        (of_postgresql("25006"), StorageDown),
        (of_postgresql("42601"), None),
        (PoolTimeout(), StorageBusy),
        (OperationalError("SELECT", {}, TimeoutError()), StorageBusy),
        (OperationalError("SELECT", {}, ConnectionResetError()), StorageDown),
        (IntegrityError("INSERT", {}, sqlite3.IntegrityError()), None),
        (ValueError(), None),
    ],
)
def test_an_error_says_what_keeps_the_database_from_its_work(
    error: Exception, problem: type[StorageDown] | None
) -> None:
    assert storage_problem(error) is problem


async def test_sqlite_says_that_it_has_no_room_and_that_it_may_not_be_written(tmp_path: Path) -> None:
    db = Database(f"sqlite+aiosqlite:///{tmp_path / 'one.db'}")

    async def problem(*statements: str) -> type[StorageDown] | None:
        async with db.session() as session:
            try:
                for statement in statements:
                    await session.execute(text(statement))
            except SQLAlchemyError as e:
                return storage_problem(e)
        return None

    assert await problem("PRAGMA max_page_count = 1", "CREATE TABLE a (b)", "CREATE TABLE c (d)") is StorageFull
    assert await problem("PRAGMA query_only = 1", "CREATE TABLE e (f)") is StorageDown
    assert await problem("SELECT * FROM there_is_none") is None
    await db.close()


async def test_who_gets_no_connection_or_no_turn_to_write_is_told_soon_that_others_are_busy(database: Database) -> None:
    small = Database(database.url, connections=1, wait_s=0.1)
    held, over = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        async with small.writing() as session:
            await session.execute(text("SELECT 1"))
            held.set()
            await over.wait()

    holding = asyncio.create_task(hold())
    await held.wait()
    for opening in (small.session(), small.writing()):
        with pytest.raises(PoolTimeout):
            async with opening as session:
                await session.execute(text("SELECT 1"))
    over.set()
    await holding
    async with small.writing() as session:
        assert await session.scalar(text("SELECT 1")) == 1
    await small.close()


async def test_a_statement_of_postgresql_ends_in_time_and_so_does_a_server_that_is_away() -> None:
    url = os.environ.get("LOCKSTEP_TEST_POSTGRES_URL", "")
    if not url:
        pytest.skip("LOCKSTEP_TEST_POSTGRES_URL is not set")
    db, away = Database(url, statement_s=0.2), Database("postgresql+asyncpg://x@127.0.0.1:1/x", wait_s=2)

    with pytest.raises(OperationalError) as slow:
        async with db.session() as session:
            await session.execute(text("SELECT pg_sleep(60)"))
    async with db.session() as session:
        assert await session.scalar(text("SELECT 1")) == 1
    with pytest.raises(OperationalError) as refused:
        async with away.session() as session:
            await session.execute(text("SELECT 1"))

    assert storage_problem(slow.value) is StorageBusy
    assert storage_problem(refused.value) is StorageDown
    for one in (db, away):
        await one.close()
