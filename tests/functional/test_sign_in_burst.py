"""A whole class returns after a pause: each sign-in is noted again at once, and nobody waits for the database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import func, select, update

from app.accounts.auth_sessions import SEEN_AT_PRECISION
from app.accounts.models import AuthSession
from app.accounts.session_cookie import SESSION_COOKIE
from app.db import Database, now
from app.main import create_app
from app.settings import Settings
from tests.factories.accounts import signed_in_browser
from tests.factories.browser_client import press_run
from tests.factories.course import LESSON
from tests.factories.databases import mainly_on
from tests.factories.scripted_supervisor import ScriptedSupervisor

pytestmark = mainly_on("postgresql")  # where connections are scarce; SQLite has one writer anyway


@pytest.fixture
async def app(settings: Settings, database: Database) -> AsyncIterator[FastAPI]:
    """The application on a database of each kind."""
    app = create_app(settings.model_copy(update={"database_url": database.url}))
    async with app.router.lifespan_context(app):
        yield app


async def a_class(app: FastAPI, learners: int, leave: AsyncExitStack) -> list[httpx.AsyncClient]:
    """Browsers of this many accounts whose sign-in was last noted so long ago that the next request notes it again."""
    browsers = [await leave.enter_async_context(await signed_in_browser(app)) for _ in range(learners)]
    db: Database = app.state.db
    async with db.writing() as session:
        await session.execute(update(AuthSession).values(last_seen_at=now() - SEEN_AT_PRECISION - timedelta(seconds=1)))
    return browsers


async def test_a_hundred_learners_who_return_at_once_are_answered_and_stay_signed_in(
    app: FastAPI, supervisor: ScriptedSupervisor
) -> None:
    begun = now()
    async with AsyncExitStack() as leave:
        browsers = await a_class(app, 100, leave)

        answers = await asyncio.gather(*(browser.get("/runs", params={"lesson": LESSON}) for browser in browsers))

    assert {answer.status_code for answer in answers} == {200}
    assert all(f"{SESSION_COOKIE}=" in answer.headers["set-cookie"] for answer in answers)
    db: Database = app.state.db
    async with db.session() as session:
        assert await session.scalar(select(func.count()).where(AuthSession.last_seen_at >= begun)) == 100


async def test_forty_learners_who_return_and_press_run_at_once_all_see_output(
    app: FastAPI, supervisor: ScriptedSupervisor
) -> None:
    supervisor.answer = ["hello"]
    async with AsyncExitStack() as leave:
        browsers = await a_class(app, 40, leave)

        runs = await asyncio.gather(*(press_run(browser) for browser in browsers))
        streams = await asyncio.gather(
            *(browser.get(f"/runs/{run['id']}/stream") for browser, run in zip(browsers, runs, strict=True))
        )

    assert all("hello" in stream.text and "event: finished" in stream.text for stream in streams)
