"""What is looked up of a learner's ledger."""

from __future__ import annotations

from app.db import Database
from app.progress.history import find_public_account


async def test_a_handle_that_no_database_holds_is_nobodys(database: Database) -> None:
    async with database.session() as session:
        assert await find_public_account(session, "ada\0") is None
