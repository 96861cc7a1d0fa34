"""People who write comments: in one database, or each with a browser."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from fastapi import FastAPI
from sqlalchemy import update

from app.accounts.models import Account, Role
from app.db import Database, now
from tests.factories.accounts import an_account, signed_in
from tests.factories.browser import browser
from tests.factories.comments import Class, People


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


@pytest.fixture
async def room(app: FastAPI) -> AsyncIterator[Class]:
    db = app.state.db
    ada = await an_account(db, name="Ada Byron")
    bob = await an_account(db, name="Bob Moore")
    teacher = await an_account(db, Role.instructor, name="Tea Cher")
    async with (
        browser(app) as stranger,
        await signed_in(app, ada) as of_ada,
        await signed_in(app, bob) as of_bob,
        await signed_in(app, teacher) as of_teacher,
    ):
        yield Class(app, stranger, of_ada, of_bob, of_teacher, {"ada": ada, "bob": bob, "teacher": teacher})
