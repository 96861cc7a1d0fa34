"""What learners, load balancers and the log get while the database cannot do its work, and after."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from fastapi import FastAPI
from sqlalchemy import text

from app.db import Database
from app.main import create_app
from app.settings import Settings
from tests.factories.accounts import signed_in
from tests.factories.browser import browser
from tests.factories.course import LESSON
from tests.factories.supervisor import Supervisor

CONNECTIONS = 2


@pytest.fixture
async def app(settings: Settings, database: Database) -> AsyncIterator[FastAPI]:
    """The application with two connections to a database of each kind."""
    small = {"database_url": database.url, "database_connections": CONNECTIONS, "database_wait_s": 0.2}
    app = create_app(settings.model_copy(update=small))
    async with app.router.lifespan_context(app):
        yield app


@pytest.mark.parametrize(("language", "words"), [("en", "too many requests"), ("ko", "요청"), ("zh", "请求")])
async def test_where_every_connection_is_in_use_requests_are_told_when_to_come_back_and_then_answered(
    app: FastAPI, supervisor: Supervisor, language: str, words: str
) -> None:
    db: Database = app.state.db
    held, over = asyncio.Barrier(CONNECTIONS + 1), asyncio.Event()

    async def hold() -> None:
        async with db.session() as session:
            await session.execute(text("SELECT 1"))
            await held.wait()
            await over.wait()

    async with await signed_in(app) as client, browser(app) as load_balancer:
        holders = [asyncio.create_task(hold()) for _ in range(CONNECTIONS)]
        await held.wait()
        refused = await client.get("/runs", params={"lesson": LESSON}, headers={"x-lockstep-lang": language})
        not_ready = await load_balancer.get("/readyz")
        over.set()
        await asyncio.gather(*holders)
        answered = await client.get("/runs", params={"lesson": LESSON})
        ready = await load_balancer.get("/readyz")

    error = refused.json()["error"]
    assert (refused.status_code, error["code"], refused.headers["retry-after"]) == (503, "storage_busy", "5")
    assert words in error["message"]
    assert (not_ready.status_code, not_ready.json()["missing"]) == (503, ["database"])
    assert (answered.status_code, ready.status_code) == (200, 200)
