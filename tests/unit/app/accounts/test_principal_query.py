"""Finding the person behind a request in one query, on SQLite and on PostgreSQL."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import func, inspect, literal, select, update

from app.accounts.auth_sessions import create_auth_session
from app.accounts.models import Account, AuthSession
from app.accounts.page_pieces import ACCOUNT_ID, LEARNER_ID
from app.accounts.principal_query import FoundPrincipal, PrincipalQuery
from app.accounts.tokens import token_hash
from app.db import Base, Database, now
from tests.factories.accounts import store_account

QUERY = PrincipalQuery()


async def signed_in(db: Database, *, pending: bool = False, name: str = "Ada Byron") -> tuple[Account, str]:
    account = await store_account(db, name=name)
    async with db.writing() as session:
        token = await create_auth_session(session, account, method="password", pending=pending, user_agent="한글")
    return account, token_hash(token)


async def find(db: Database, hashed: str, query: PrincipalQuery = QUERY, **later: int) -> FoundPrincipal | None:
    row = await query.row(db, hashed, now() + timedelta(**later))
    return query.build(row, db.engine.dialect) if row is not None else None


def values(row: Base) -> dict[str, Any]:
    return {attribute.key: getattr(row, attribute.key) for attribute in row.__mapper__.column_attrs}


async def test_what_is_built_from_a_row_is_what_the_orm_loads(database: Database) -> None:
    account, hashed = await signed_in(database)
    found = await find(database, hashed)
    assert found
    async with database.session() as session:
        assert values(found.account) == values(await session.get_one(Account, account.id))
        assert values(found.auth_session) == values(await session.get_one(AuthSession, hashed))
    assert found.account.created_at.tzinfo
    assert found.account.public_profile is False


async def test_what_is_built_is_detached_and_can_be_changed_in_another_session(database: Database) -> None:
    account, hashed = await signed_in(database)
    found = await find(database, hashed)
    assert found
    state = inspect(found.account)
    assert state.detached
    assert not state.modified
    async with database.writing() as session:
        session.add(found.account)
        found.account.name = "Ada Lovelace"
    async with database.session() as session:
        stored = await session.get_one(Account, account.id)
        assert (stored.name, stored.handle) == ("Ada Lovelace", account.handle)


@pytest.mark.parametrize("hashed", ["", "0" * 64, "' OR 1=1 --"])
async def test_another_token_finds_nobody(database: Database, hashed: str) -> None:
    await signed_in(database)

    assert await find(database, hashed) is None


async def test_nobody_is_found_once_the_session_has_expired_or_the_account_is_disabled(database: Database) -> None:
    account, hashed = await signed_in(database)
    assert await find(database, hashed, days=29)
    assert await find(database, hashed, days=31) is None
    async with database.writing() as session:
        await session.execute(update(Account).where(Account.id == account.id).values(disabled_at=now()))

    assert await find(database, hashed) is None


async def test_a_sign_in_that_waits_for_its_second_step_is_found_as_such(database: Database) -> None:
    _, hashed = await signed_in(database, pending=True)
    found = await find(database, hashed)

    assert found
    assert found.auth_session.pending is True


async def test_facts_are_about_the_account_that_was_found(database: Database) -> None:
    own = select(Account.name).where(Account.id == ACCOUNT_ID).scalar_subquery()
    sessions = select(AuthSession.token_hash).where(AuthSession.account_id == ACCOUNT_ID).limit(5).subquery()
    count = select(func.count()).select_from(sessions).scalar_subquery()
    same = select(literal(1)).where(LEARNER_ID == LEARNER_ID).scalar_subquery()
    query = PrincipalQuery([own, count, same])
    for name in ("Ada Byron", "Bob Moore"):
        _, hashed = await signed_in(database, name=name)
        found = await find(database, hashed, query)
        assert found
        assert found.facts == (name, 1, 1)
