"""Queries that are compiled once, on SQLite and on PostgreSQL."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from unittest.mock import Mock

import aiosqlite
import pytest
from sqlalchemy import Integer, String, bindparam, event, func, literal, select, text, true, union_all
from sqlalchemy.exc import DBAPIError

from app.accounts.models import Account
from app.db import Database, UtcDateTime, now
from app.prepared_query import PreparedQuery
from tests.factories.accounts import store_account

BY_NAME = PreparedQuery(
    select(Account.handle, Account.public_profile).where(
        Account.name == bindparam("name", type_=String), Account.created_at < bindparam("at", type_=UtcDateTime())
    )
)


async def test_values_are_bound_by_name_and_converted_by_their_types(database: Database) -> None:
    ada = await store_account(database, name="Ada Byron")
    later = now() + timedelta(hours=1)
    async with database.session() as session:
        assert await BY_NAME.rows(session, name="Ada Byron", at=later) == [(ada.handle, False)]
        assert await BY_NAME.rows(session, at=later, name="Bob' OR 1=1 --") == []
        assert await BY_NAME.rows(session, name="Ada Byron", at=later - timedelta(days=1)) == []


async def test_a_value_can_be_used_twice_and_have_a_default(database: Database) -> None:
    number = bindparam("number", 7, type_=Integer)
    query = PreparedQuery(union_all(select(number, literal("first")), select(number + 1, literal("second"))))
    async with database.session() as session:
        assert await query.rows(session) == [(7, "first"), (8, "second")]
        assert await query.rows(session, number=1) == [(1, "first"), (2, "second")]


async def test_a_query_that_is_read_directly_returns_what_a_session_returns(database: Database) -> None:
    await store_account(database, name="Ada Byron")
    values = {"name": "Ada Byron", "at": now() + timedelta(hours=1)}
    async with database.session() as session:
        rows = await BY_NAME.rows(session, **values)

    assert await asyncio.gather(*(BY_NAME.read(database, **values) for _ in range(20))) == [rows] * 20


async def test_a_query_that_is_read_directly_is_seen_by_whoever_watches_statements(database: Database) -> None:
    seen: list[str] = []
    engine = database.engine.sync_engine
    event.listen(engine, "before_cursor_execute", lambda _c, _k, statement, *_: seen.append(statement))

    assert await BY_NAME.read(database, name="Bob", at=now()) == []
    assert len(seen) == 1


async def test_an_error_of_a_direct_read_is_sqlalchemys_and_the_next_read_works(database: Database) -> None:
    for _ in range(20):  # more than there are connections
        with pytest.raises(DBAPIError, match="no_such_table"):
            await database.read("SELECT 1 FROM no_such_table", ())

    assert await BY_NAME.read(database, name="Bob", at=now()) == []


async def test_a_direct_read_that_is_cancelled_keeps_no_connection(database: Database) -> None:
    for _ in range(20):
        reading = asyncio.create_task(BY_NAME.read(database, name="Bob", at=now()))
        await asyncio.sleep(0)
        reading.cancel()
        with suppress(asyncio.CancelledError):
            await reading

    assert await BY_NAME.read(database, name="Bob", at=now()) == []


async def test_reads_that_are_cancelled_while_sqlite_connects_leave_one_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = Mock(side_effect=aiosqlite.connect)
    db = Database(f"sqlite+aiosqlite:///{tmp_path / 'one.db'}")
    monkeypatch.setattr("app.sqlite.aiosqlite.connect", connect)
    for _ in range(20):
        reading = asyncio.create_task(db.read("SELECT 1", ()))
        await asyncio.sleep(0)
        reading.cancel()
        with suppress(asyncio.CancelledError):
            await reading

    assert await db.read("SELECT 1", ()) == [(1,)]
    await db.close()
    assert connect.call_count == 1


async def test_a_direct_read_cannot_write_to_sqlite(tmp_path: Path) -> None:
    db = Database(f"sqlite+aiosqlite:///{tmp_path / 'one.db'}")
    async with db.writing() as session:
        await session.execute(text("CREATE TABLE numbers (n INTEGER)"))
    with pytest.raises(DBAPIError, match="readonly"):
        await db.read("INSERT INTO numbers VALUES (1)", ())
    await db.close()


async def test_a_prepared_query_sees_what_its_session_has_written(database: Database) -> None:
    count = PreparedQuery(select(func.count()).select_from(Account).where(true()))
    await store_account(database)
    async with database.session() as session:
        (account,) = (await session.scalars(select(Account))).all()
        await session.delete(account)
        await session.flush()
        assert await count.rows(session) == [(0,)]
        await session.rollback()
        assert await count.rows(session) == [(1,)]
