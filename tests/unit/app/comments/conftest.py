"""People who write comments: in one database, or each with a browser."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from fastapi import FastAPI
from sqlalchemy import update

from app.accounts.models import Account, Role
from app.db import Database, now
from tests.factories.accounts import signed_in_browser, store_account
from tests.factories.browser_client import browser_client
from tests.factories.comments import Classroom, Commenters


@pytest.fixture
async def people(database: Database) -> Commenters:
    ada = await store_account(database, name="Ada Byron")
    bob = await store_account(database, name="Bob Moore")
    teacher = await store_account(database, Role.instructor, name="Tea Cher")
    long_ago = now() - timedelta(days=9)
    async with database.writing() as session:
        await session.execute(update(Account).values(created_at=long_ago))
    for account in (ada, bob, teacher):
        account.created_at = long_ago
    return Commenters(database, ada, bob, teacher)


@pytest.fixture
async def room(app: FastAPI) -> AsyncIterator[Classroom]:
    db = app.state.db
    ada = await store_account(db, name="Ada Byron")
    bob = await store_account(db, name="Bob Moore")
    teacher = await store_account(db, Role.instructor, name="Tea Cher")
    async with (
        browser_client(app) as stranger,
        await signed_in_browser(app, ada) as of_ada,
        await signed_in_browser(app, bob) as of_bob,
        await signed_in_browser(app, teacher) as of_teacher,
    ):
        yield Classroom(app, stranger, of_ada, of_bob, of_teacher, {"ada": ada, "bob": bob, "teacher": teacher})
