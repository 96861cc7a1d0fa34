from __future__ import annotations

import pytest
from sqlalchemy import select, update

from app.accounts.models import Account, MergedVisitor
from app.db import Database, now
from app.runs.disabled_accounts import find_disabled_owners
from app.runs.service import session_owner
from tests.factories.accounts import store_account


@pytest.mark.parametrize("last", ["0", "9", "a", "f"])
async def test_only_owners_with_a_disabled_account_are_found(database: Database, last: str) -> None:
    accounts = [await store_account(database) for _ in range(3)]
    start = session_owner(accounts[0].learner_id)
    async with database.writing() as session:
        await session.execute(
            update(Account).where(Account.id == accounts[0].id).values(learner_id=start + 32 * last, disabled_at=now())
        )
        await session.execute(update(Account).where(Account.id == accounts[1].id).values(disabled_at=now()))
        for visitor, account in (("a", accounts[0]), ("b", accounts[2])):
            merged = MergedVisitor(visitor_id=32 * visitor + 32 * last, account_id=account.id, merged_at=now())
            session.add(merged)

    visitors = ["0" * 32, "a" * 32, "b" * 32]
    owners = [start, session_owner(accounts[2].learner_id), *visitors, *(f"{n:032x}" for n in range(1, 250))]
    assert await find_disabled_owners(database, owners) == {start, "a" * 32}
    async with database.session() as session:
        assert await session.scalar(select(Account.id).where(Account.learner_id == start + 32 * last))
