"""The meaning of errors of real databases."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import asyncpg
import pytest
import structlog
from sqlalchemy import inspect, text
from sqlalchemy.exc import DBAPIError, IntegrityError, InternalError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app import database_health
from app.database_health import DatabaseMonitor, classify_database_error
from app.db import Database
from app.errors import DatabaseBusy, DatabaseFull, DatabaseUnavailable
from tests.factories.databases import POSTGRES


def of_postgresql(state: str) -> DBAPIError:
    error = Exception("what PostgreSQL said")
    error.sqlstate = state  # type: ignore[attr-defined]
    return DBAPIError("INSERT", {}, error)


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (of_postgresql("53100"), DatabaseFull),
        (of_postgresql("53300"), DatabaseBusy),
        (of_postgresql("57014"), DatabaseBusy),
        (of_postgresql("57P03"), DatabaseUnavailable),
        (of_postgresql("08006"), DatabaseUnavailable),
        (of_postgresql("25006"), DatabaseUnavailable),
        (of_postgresql("42601"), None),
        (PoolTimeout(), DatabaseBusy),
        (OperationalError("SELECT", {}, TimeoutError()), DatabaseBusy),
        (OperationalError("SELECT", {}, ConnectionResetError()), DatabaseUnavailable),
        (InternalError("ROLLBACK", {}, Exception("another operation is in progress")), DatabaseUnavailable),
        (IntegrityError("INSERT", {}, sqlite3.IntegrityError()), None),
        (ValueError(), None),
    ],
)
def test_an_error_says_what_keeps_the_database_from_its_work(
    error: Exception, problem: type[DatabaseUnavailable] | None
) -> None:
    assert classify_database_error(error) is problem


async def test_sqlite_says_that_it_has_no_room_and_that_it_may_not_be_written(tmp_path: Path) -> None:
    db = Database(f"sqlite+aiosqlite:///{tmp_path / 'one.db'}")

    async def problem(*statements: str) -> type[DatabaseUnavailable] | None:
        async with db.session() as session:
            try:
                for statement in statements:
                    await session.execute(text(statement))
            except SQLAlchemyError as e:
                return classify_database_error(e)
        return None

    assert await problem("PRAGMA max_page_count = 1", "CREATE TABLE a (b)", "CREATE TABLE c (d)") is DatabaseFull
    assert await problem("PRAGMA query_only = 1", "CREATE TABLE e (f)") is DatabaseUnavailable
    assert await problem("SELECT * FROM there_is_none") is None
    await db.close()


async def test_without_a_connection_or_a_turn_to_write_one_is_told_soon(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = asyncpg.connect  # a busy PostgreSQL takes longer for its only connection than one waits for a turn
    monkeypatch.setattr(asyncpg, "connect", lambda *where, **how: connect(*where, **how | {"timeout": 60.0}))
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


async def test_a_statement_of_postgresql_ends_in_time_and_so_does_a_server_that_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = os.environ.get(POSTGRES, "")
    if not url:
        pytest.skip(f"{POSTGRES} is not set")
    db, away = Database(url, statement_s=0.2), Database("postgresql+asyncpg://x@127.0.0.1:1/x", wait_s=2)

    with pytest.raises(OperationalError) as slow:
        async with db.session() as session:
            await session.execute(text("SELECT pg_sleep(60)"))
    connect = asyncpg.connect  # only that was meant to exceed its limit, not the first steps of another connection
    monkeypatch.setattr(asyncpg, "connect", lambda *where, **how: connect(*where, **how | {"command_timeout": 60.0}))
    async with db.session() as session:
        assert await session.scalar(text("SELECT 1")) == 1
    with pytest.raises(OperationalError) as refused:
        async with away.session() as session:
            await session.execute(text("SELECT 1"))

    assert classify_database_error(slow.value) is DatabaseBusy
    assert classify_database_error(refused.value) is DatabaseUnavailable
    for one in (db, away):
        await one.close()


class Disk:
    """A write that fails while there is no space, and counts how often it was attempted."""

    def __init__(self) -> None:
        self.error: DBAPIError | None = of_postgresql("53100")
        self.tries = 0

    async def write(self) -> None:
        self.tries += 1
        if self.error is not None:
            raise self.error


async def test_an_outage_is_one_error_in_the_log_and_its_end_is_found_by_a_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(database_health, "_PROBE_INTERVAL_S", 0.0)
    disk = Disk()
    monitor = DatabaseMonitor(disk.write)
    with structlog.testing.capture_logs() as logs:
        assert await monitor.problem() is None
        assert disk.tries == 0, "nothing is written while all is well"
        for _ in range(1000):
            with pytest.raises(DBAPIError), monitor.watching():
                raise of_postgresql("53100")
        assert await monitor.problem() is DatabaseFull
        with pytest.raises(DatabaseFull):
            await monitor.check()
        disk.error = None
        await monitor.check()

    assert not monitor.failing
    assert disk.tries == 3
    assert [line["log_level"] for line in logs] == ["error", "warning"]


async def test_however_many_ask_a_write_is_tried_once_a_second_at_most() -> None:
    disk = Disk()
    monitor = DatabaseMonitor(disk.write)
    monitor.note(of_postgresql("53100"))

    assert set(await asyncio.gather(*(monitor.problem() for _ in range(100)))) == {DatabaseFull}
    assert disk.tries == 1


async def test_an_outage_that_comes_and_goes_fills_no_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_health, "_PROBE_INTERVAL_S", 0.0)
    disk = Disk()
    disk.error = None
    monitor = DatabaseMonitor(disk.write)
    with structlog.testing.capture_logs() as logs:
        for _ in range(20):
            monitor.note(of_postgresql("53100"))
            assert await monitor.problem() is None

    assert [line["log_level"] for line in logs] == ["error", "warning"]


async def test_a_busy_database_and_a_broken_rule_are_no_outage() -> None:
    monitor = DatabaseMonitor(Disk().write)
    with structlog.testing.capture_logs() as logs:
        for error in (PoolTimeout(), PoolTimeout(), IntegrityError("INSERT", {}, sqlite3.IntegrityError())):
            monitor.note(error)

    assert not monitor.failing
    assert [(line["log_level"], line["event"]) for line in logs] == [("warning", "the database is too busy")]


async def test_sqlites_error_about_its_files_means_a_full_disk_where_there_is_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = sqlite3.OperationalError("disk I/O error")
    broken.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHMSIZE
    disk = Disk()
    disk.error = OperationalError("INSERT", {}, broken)
    monitor = DatabaseMonitor(disk.write, tmp_path / "one.db")
    monitor.note(disk.error)
    assert await monitor.problem() is DatabaseUnavailable

    monkeypatch.setattr(database_health, "_PROBE_INTERVAL_S", 0.0)
    monkeypatch.setattr(database_health, "_MIN_FREE_BYTES", 2**60)
    assert await monitor.problem() is DatabaseFull


async def test_a_probe_leaves_nothing_behind(database: Database) -> None:
    await database.health._try_to_write()

    async with database.engine.connect() as connection:
        tables = await connection.run_sync(lambda c: inspect(c).get_table_names())
    assert not [table for table in tables if table.startswith("storage_probe")]


async def test_a_probe_that_may_not_begin_leaves_its_connection_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "one.db"
    db = Database(f"sqlite+aiosqlite:///{path}", connections=1, wait_s=0.1)
    async with db.engine.connect() as connection:
        before = (await connection.exec_driver_sql("PRAGMA cache_size")).scalar_one()
    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(OperationalError, match="locked"):
            await db.health._try_to_write()
    async with db.engine.connect() as connection:
        after = (await connection.exec_driver_sql("PRAGMA cache_size")).scalar_one()
    await db.close()

    assert after == before
