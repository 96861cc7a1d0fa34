"""People who write comments, in one database."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import update

from app.accounts.models import Account, Role
from app.db import Database, now
from tests.factories.accounts import an_account
from tests.factories.comments import People


@pytest.fixture
async def people(database: Database) -> People:
    ada = await an_account(database, name="Ada Byron")
    bob = await an_account(database, name="Bob Moore")
    teacher = await an_account(database, Role.instructor, name="Tea Cher")
    long_ago = now() - timedelta(days=9)
    async with database.writing() as session:
        await session.execute(update(Account).values(created_at=long_ago))
    for account in (ada, bob, teacher):
        account.created_at = long_ago
    return People(database, ada, bob, teacher)
