"""What learners, load balancers and the log see while the database fails, and after."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection

from app import migrate
from app.db import Database
from app.main import create_app
from app.monitoring.site_metrics import look_at_site
from app.observability import configure_logging
from app.settings import Settings
from tests.factories.accounts import signed_in_browser
from tests.factories.browser_client import browser_client, press_run
from tests.factories.course import LESSON
from tests.factories.databases import BACKENDS
from tests.factories.scripted_supervisor import ScriptedSupervisor
from tests.factories.small_disk import database_on, small_disk

CONNECTIONS = 2


@pytest.fixture
async def app(settings: Settings, database: Database) -> AsyncIterator[FastAPI]:
    """The application with two connections to a database of each kind."""
    small = {"database_url": database.url, "database_connections": CONNECTIONS, "database_wait_timeout_s": 0.2}
    app = create_app(settings.model_copy(update=small))
    async with app.router.lifespan_context(app):
        await open_connections(app.state.db)
        yield app


async def open_connections(db: Database) -> None:
    """Open all connections: on a busy machine, that can take longer than a request here may wait."""
    for connection in [await connected(db) for _ in range(CONNECTIONS)]:
        await connection.close()


async def connected(db: Database) -> AsyncConnection:
    """A connection of the pool, for which the application's own tasks may make us wait longer than a request may."""
    async with asyncio.timeout(30):
        while True:
            with suppress(OperationalError, PoolTimeout):
                return await db.engine.connect()


@pytest.mark.parametrize(("language", "words"), [("en", "too many requests"), ("ko", "요청"), ("zh", "请求")])
async def test_with_every_connection_in_use_requests_are_told_when_to_come_back(
    app: FastAPI, database: Database, supervisor: ScriptedSupervisor, language: str, words: str
) -> None:
    async with await signed_in_browser(app, db=database) as client, browser_client(app) as load_balancer:
        held = [await connected(app.state.db) for _ in range(CONNECTIONS)]
        refused = await client.get("/runs", params={"lesson": LESSON}, headers={"x-lockstep-lang": language})
        not_ready = await load_balancer.get("/readyz")
        for connection in held:
            await connection.close()
        # The application's own tasks have waited, too, and may hold the connections for another moment.
        async with asyncio.timeout(30):
            while (await client.get("/runs", params={"lesson": LESSON})).status_code != 200:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        await until(load_balancer, "/readyz", status="ready")

    error = refused.json()["error"]
    assert (refused.status_code, error["code"], refused.headers["retry-after"]) == (503, "database_busy", "5")
    assert words in error["message"]
    assert (not_ready.status_code, not_ready.json()["missing"]) == (503, ["database"])


async def until(client: httpx.AsyncClient, path: str, **wanted: Any) -> dict[str, Any]:
    """The content at an address, once it contains all of this."""
    async with asyncio.timeout(30):
        while True:
            found: dict[str, Any] = (await client.get(path)).json()
            if wanted.items() <= found.items():
                return found
            await asyncio.sleep(0.05)


async def until_told(app: FastAPI, run_id: str, state: str) -> None:
    """Return once the stream of a run reports that state."""
    async with asyncio.timeout(10), aclosing(app.state.dispatcher.streams.frames(run_id, 0)) as stream:
        async for frames in stream:
            if any(frame.event == "state" and json.loads(frame.data)["state"] == state for frame in frames):
                return


@pytest.mark.parametrize("kind", BACKENDS)
async def test_on_a_full_disk_runs_are_refused_and_output_waits_until_there_is_room(
    settings: Settings, supervisor: ScriptedSupervisor, kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with small_disk(40) as disk:
        async with database_on(disk, kind) as url:
            db = Database(url)
            await migrate.upgrade(db)
            await db.close()
            app = create_app(settings.model_copy(update={"database_url": url}))
            async with app.router.lifespan_context(app), await signed_in_browser(app) as client:
                configure_logging(settings)
                run = await press_run(client)
                disk.fill()
                scripted = await supervisor.run(run["id"])
                output = [secrets.token_hex(25_000) for _ in range(40)]
                await supervisor.say(scripted, *output)
                await supervisor.finish(scripted)

                not_ready = await until(client, "/readyz", status="not ready")
                asked = {"lesson": LESSON, "cell": "hello", "code": "print(2)"}
                refused = {
                    language: await client.post("/runs", json=asked, headers={"x-lockstep-lang": language})
                    for language in ("en", "ko", "zh")
                }
                waiting = (await client.get(f"/runs/{run['id']}")).json()
                await until_told(app, run["id"], "unstored")
                lesson = await client.get("/en/courses/small/first")
                full = (await look_at_site(app.state.db, app.state.runner)).storage
                log = capfd.readouterr().err
                disk.free()
                ready = await until(client, "/readyz", status="ready")
                await until(client, f"/runs/{run['id']}", state="finished", outcome="ok")
                events = (await client.get(run["urls"]["events"])).json()["events"]
                again = await client.post("/runs", json=asked)

    assert not_ready["missing"] == ["database"]
    assert not_ready["reasons"] == {"database": "database_full"}
    assert {(r.status_code, r.json()["error"]["code"], r.headers["retry-after"]) for r in refused.values()} == {
        (503, "database_full", "60")
    }
    for language, words in {"en": "disk is full", "ko": "디스크가 가득", "zh": "磁盘已满"}.items():
        assert words in refused[language].json()["error"]["message"]
    assert waiting["state"] != "finished"
    assert lesson.status_code == 200
    assert full is not None
    assert not full.writable
    told = [line for line in log.splitlines() if "its disk is full" in line]
    assert len(told) == 1, log
    assert "[error" in told[0]
    assert "failed" not in log
    assert ready["missing"] == []
    assert [event["text"] for event in events if event["kind"] == "text"] == output
    assert again.status_code == 202
    assert len(supervisor.submitted) == 2
