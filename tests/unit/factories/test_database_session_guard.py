"""The guard detects a second session."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from sqlalchemy import text

from app.db import Database
from tests.factories.database_session_guard import SecondSession


@pytest.mark.parametrize("outer", ["session", "writing"])
@pytest.mark.parametrize("inner", ["session", "writing"])
async def test_a_task_that_opens_a_second_session_fails_even_if_it_hides_the_error(
    database: Database, second_sessions: list[SecondSession], outer: str, inner: str
) -> None:
    async with getattr(database, outer)():
        with suppress(AssertionError):
            async with getattr(database, inner)():
                pytest.fail("the guard let a second session open")

    assert len(second_sessions) == 1
    second_sessions.clear()


async def test_one_session_after_another_and_one_for_each_task_are_fine(database: Database) -> None:
    both_hold_one = asyncio.Barrier(2)

    async def hold_one() -> None:
        async with database.session() as session:
            await session.execute(text("SELECT 1"))
            await both_hold_one.wait()
        async with database.writing() as session:
            await session.execute(text("SELECT 1"))

    await asyncio.gather(hold_one(), hold_one())
