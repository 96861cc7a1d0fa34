"""Browsers that join one account: nothing is lost, nothing is counted twice, whoever comes first."""

from __future__ import annotations

import asyncio

from sqlalchemy import func, select

from app.accounts.merge import MergeResult, merge_visitor, resolve_learner_id
from app.accounts.models import Account, MergedVisitor
from app.db import Database
from app.runs.models import Run
from app.runs.personal_data import move_runs
from tests.factories.accounts import store_account
from tests.factories.stored_runs import store_runs

MERGERS = (move_runs,)


async def count_runs(db: Database, learner: str) -> int:
    async with db.session() as session:
        return await session.scalar(select(func.count()).where(Run.learner_id == learner)) or 0


async def merge(db: Database, visitor: str, account: Account, *, adopt: bool = False) -> MergeResult:
    async with db.writing() as session:
        mine = await session.merge(account)
        return await merge_visitor(session, visitor, mine, MERGERS, adopt=adopt)


async def test_two_browsers_merge_at_once_and_each_again(database: Database) -> None:
    account = await store_account(database)
    for visitor in ("a", "b"):
        await store_runs(database, visitor, 3)

    merged = await asyncio.gather(*(merge(database, visitor, account) for visitor in ("a", "b", "a", "b", "a")))

    assert sorted(came.moved_counts.get("runs", 0) for came in merged) == [0, 0, 0, 3, 3]
    assert await count_runs(database, account.learner_id) == 6


async def test_one_browser_that_signs_in_to_two_accounts_at_once_goes_to_one(database: Database) -> None:
    accounts = [await store_account(database) for _ in range(2)]
    await store_runs(database, "a", 3)

    await asyncio.gather(*(merge(database, "a", account) for account in accounts))

    assert sorted([await count_runs(database, account.learner_id) for account in accounts]) == [0, 3]


async def test_a_new_account_goes_on_as_the_visitor(database: Database) -> None:
    account = await store_account(database)
    await store_runs(database, "a", 2)

    assert (await merge(database, "a", account, adopt=True)).adopted

    async with database.session() as session:
        stored = await session.get(Account, account.id)
        assert stored is not None
        assert stored.learner_id == "a"
        assert await session.get(MergedVisitor, "a") is not None
        assert await resolve_learner_id(session, "a") == "a"
    assert await count_runs(database, "a") == 2


async def test_a_visitor_is_known_by_the_account_they_became(database: Database) -> None:
    account = await store_account(database)
    await merge(database, "a", account)
    async with database.session() as session:
        assert await resolve_learner_id(session, "a") == account.learner_id
        assert await resolve_learner_id(session, "somebody else") == "somebody else"
