"""Queries that are compiled once, on SQLite and on PostgreSQL."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import Integer, String, bindparam, func, literal, select, true, union_all

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
