"""PostgreSQL stops or freezes, and goes on: requests are told when to come back, and then all is as before."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import httpx
import pytest
from fastapi import FastAPI

from app import migrate
from app.db import Database
from app.main import create_app
from app.observability import configure_logging
from app.settings import Settings
from tests.factories.accounts import store_account
from tests.factories.browser_client import press_run
from tests.factories.course import LESSON
from tests.factories.databases import delete_rows
from tests.factories.http_server import serving
from tests.factories.postgresql_server import PostgresqlServer, postgresql_server
from tests.factories.scripted_supervisor import ScriptedSupervisor
from tests.factories.sse_client import live_stream, printed_text
from tests.functional.test_several_web_processes import sign_in

EVENTS = {"accept": "text/event-stream"}
_PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresqlServer]:
    with postgresql_server() as server:
        yield server


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A silent server is noticed sooner."""
    monkeypatch.setattr("app.silence_watch.PATIENCE_S", 0.5)
    monkeypatch.setattr("app.silence_watch.ANSWER_TIMEOUT_S", 2.0)


@pytest.fixture
async def app(settings: Settings, server: PostgresqlServer) -> FastAPI:
    db = Database(server.url)
    await migrate.upgrade(db)
    await delete_rows(db)
    await db.close()
    return create_app(settings.model_copy(update={"database_url": server.url}))


async def first_answer(client: httpx.AsyncClient, url: str) -> httpx.Response:
    """How a stream is answered, without waiting for its end."""
    async with client.stream("GET", url, headers=EVENTS) as response:
        return response


async def ask_everything(client: httpx.AsyncClient, run: str) -> dict[str, httpx.Response]:
    """One request of each kind."""
    return {
        "page": await client.get("/en/settings", headers={"accept": "text/html"}),
        "piece": await client.get("/en/pieces?course=", headers={"hx-request": "true"}),
        "bell": await client.get("/en/notifications/bell", headers={"hx-request": "true"}),
        "stream": await first_answer(client, "/notifications/stream"),
        "stream of a run": await first_answer(client, f"/runs/{run}/stream"),
        "form": await client.post("/en/sign-in", data={"email": "ada@example.org", "password": "not the password"}),
        "data": await client.get("/runs", params={"lesson": LESSON}),
        "run": await client.post("/runs", json={"lesson": LESSON, "cell": "hello", "code": "1"}),
    }


async def everything_works(client: httpx.AsyncClient, run: str) -> dict[str, int]:
    """The status of each kind of request, once none is 503."""
    async with asyncio.timeout(_PATIENCE_S):
        while True:
            found = {kind: response.status_code for kind, response in (await ask_everything(client, run)).items()}
            if 503 not in found.values():
                return found
            await asyncio.sleep(0.1)


async def test_requests_are_told_when_to_come_back_and_then_everything_works_again(
    app: FastAPI,
    server: PostgresqlServer,
    supervisor: ScriptedSupervisor,
    settings: Settings,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("app.notifications.unread_stream._POLL_INTERVAL_S", 0.1)
    configure_logging(settings)
    async with serving(app) as client:
        await sign_in(app.state.db, client, await store_account(app.state.db, email="ada@example.org"))
        run = await press_run(client)
        scripted = await supervisor.run(run["id"])
        await supervisor.say(scripted, "before ")
        async with (
            asyncio.timeout(_PATIENCE_S),
            client.stream("GET", "/notifications/stream", headers=EVENTS) as stream,
        ):
            lines = stream.aiter_lines()
            await anext(lines)
            await asyncio.to_thread(server.stop)
            ending = [line async for line in lines if line][-1]
        down = await ask_everything(client, run["id"])
        lesson = await client.get("/en/courses/small/first")
        await supervisor.say(scripted, "after")
        await supervisor.finish(scripted)
        await asyncio.to_thread(server.start)
        works = await everything_works(client, run["id"])
        async with live_stream(client, run["urls"]["stream"]) as frames, asyncio.timeout(_PATIENCE_S):
            events = [frame async for frame in frames]
    log = capfd.readouterr().err

    assert ending.startswith("retry: ")
    assert {kind: response.status_code for kind, response in down.items()} == dict.fromkeys(down, 503)
    assert [kind for kind, response in down.items() if not 1 <= int(response.headers["retry-after"]) <= 60] == []
    assert lesson.status_code == 200, "a lesson needs no database"
    assert works == dict.fromkeys(down, 200) | {"form": 422, "run": 202}
    assert printed_text(events) == "before after"
    assert events[-1].event == "finished"
    assert "Traceback" not in log
    assert log.count("the database is not working") == 1
    assert log.count("the database works again") == 1


@pytest.mark.usefixtures("impatient")
async def test_a_frozen_database_fails_requests_soon_and_then_everything_works_again(
    server: PostgresqlServer, app: FastAPI, supervisor: ScriptedSupervisor
) -> None:
    async with serving(app) as client, asyncio.timeout(_PATIENCE_S):
        await sign_in(app.state.db, client, await store_account(app.state.db, email="ada@example.org"))
        run = await press_run(client)
        scripted = await supervisor.run(run["id"])
        with server.frozen():
            # A statement on an open connection: its own limit is a minute.
            begun = await client.get("/runs", params={"lesson": LESSON})
            later = await ask_everything(client, run["id"])
            lesson = await client.get("/en/courses/small/first")
            await supervisor.say(scripted, "said meanwhile")
            await supervisor.finish(scripted)
        works = await everything_works(client, run["id"])
        async with live_stream(client, run["urls"]["stream"]) as frames:
            events = [frame async for frame in frames]

    assert begun.status_code == 503
    assert {kind: response.status_code for kind, response in later.items()} == dict.fromkeys(later, 503)
    assert [kind for kind, response in later.items() if not 1 <= int(response.headers["retry-after"]) <= 60] == []
    assert lesson.status_code == 200, "a lesson needs no database"
    assert works == dict.fromkeys(later, 200) | {"form": 422, "run": 202}
    assert printed_text(events) == "said meanwhile"
    assert events[-1].event == "finished"
