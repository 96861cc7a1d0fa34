"""Health checks: alive and ready."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import httpx
import pytest
from fastapi import FastAPI
from structlog.testing import capture_logs

from app import migrate
from app.health import checks, routes
from app.main import create_app
from app.settings import Settings
from runners.wire.protocol import Health
from tests.factories.browser_client import browser_client
from tests.factories.course import LESSON
from tests.factories.scripted_supervisor import ScriptedSupervisor


async def test_alive_says_nothing_of_others(client: httpx.AsyncClient) -> None:
    assert (await client.get("/healthz")).json() == {"status": "ok"}


async def test_ready_when_everything_is_there(client: httpx.AsyncClient, supervisor: ScriptedSupervisor) -> None:
    response = await client.get("/readyz")

    assert response.status_code == 200, response.text
    assert response.json()["missing"] == []


async def test_a_runner_that_is_away_or_starting_is_missing(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    supervisor.health = Health(status="starting", detail="importing TensorFlow")
    starting = await client.get("/readyz")
    await supervisor.stop()
    away = await client.get("/readyz")

    for response in (starting, away):
        assert (response.status_code, response.json()["missing"]) == (503, ["runner"])


async def test_why_something_is_missing_is_for_the_log_alone(
    capfd: pytest.CaptureFixture[str], settings: Settings, supervisor: ScriptedSupervisor
) -> None:
    app = create_app(settings)
    async with app.router.lifespan_context(app), browser_client(app) as client:
        await migrate.downgrade(app.state.db, "base")
        await supervisor.stop()
        body = (await client.get("/readyz")).json()

    assert body == {"status": "not ready", "missing": ["database", "runner"]}
    log = capfd.readouterr().err
    assert "lockstep db upgrade" in log
    assert str(app.state.settings.socket) in log


def test_a_reason_that_the_database_words_differently_each_time_is_logged_once() -> None:
    log = checks.ReadinessLog()
    with capture_logs() as entries:
        for file in ("2663", "1249"):
            detail = f"writing fails: could not extend file {file}"
            log.note([checks.HealthCheck("database", False, detail, reason="database_full")])
        log.note([checks.HealthCheck("database", False, "not responding", reason="database_unavailable")])
        log.note([])

    events = [(entry["event"], entry.get("detail", "")) for entry in entries]
    assert events == [
        ("not ready", "writing fails: could not extend file 2663"),
        ("not ready", "not responding"),
        ("ready again", ""),
    ]


async def test_a_load_balancer_that_asks_again_and_again_does_not_fill_the_log(
    capfd: pytest.CaptureFixture[str], settings: Settings, supervisor: ScriptedSupervisor
) -> None:
    app = create_app(settings)
    async with app.router.lifespan_context(app), browser_client(app) as client:
        supervisor.health = Health(status="starting", detail="importing TensorFlow")
        for _ in range(3):
            await client.get("/readyz")
        supervisor.health = Health(status="broken", detail="no memory")
        for _ in range(3):
            await client.get("/readyz")
        supervisor.health = Health(status="ready")
        for _ in range(3):
            assert (await client.get("/readyz")).status_code == 200

    log = [line for line in capfd.readouterr().err.splitlines() if "ready" in line and "[warning" in line]
    assert [word for line in log for word in ("importing", "no memory", "again") if word in line] == [
        "importing",
        "no memory",
        "again",
    ]
    assert len(log) == 3


async def test_a_part_that_hangs_is_missing_and_holds_nobody_up(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor, app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_with_timeout = checks.run_with_timeout

    async def look(name: str, looking: Awaitable[checks.HealthCheck]) -> checks.HealthCheck:
        monkeypatch.setattr(checks, "CHECK_TIMEOUT_S", 0.1 if name == "runner" else 60.0)
        return await run_with_timeout(name, looking)

    monkeypatch.setattr(routes, "run_with_timeout", look)
    monkeypatch.setattr(app.state.dispatcher.runner, "health", asyncio.Event().wait)
    async with asyncio.timeout(20):  # without a limit of its own, the answer would never come
        response = await client.get("/readyz")

    assert (response.status_code, response.json()["missing"]) == (503, ["runner"])


async def test_a_database_without_its_tables_is_missing(app: FastAPI, supervisor: ScriptedSupervisor) -> None:
    await migrate.downgrade(app.state.db, "base")
    async with browser_client(app) as client:
        body = (await client.get("/readyz")).json()

    assert body["missing"] == ["database"]


@pytest.mark.parametrize("url", ["sqlite+aiosqlite:////nowhere/x.db", "postgresql+asyncpg://x@127.0.0.1:1/x"])
async def test_a_server_without_a_database_is_up_refuses_runs_and_says_so(
    settings: Settings, supervisor: ScriptedSupervisor, url: str
) -> None:
    app = create_app(settings.model_copy(update={"database_url": url}))
    async with app.router.lifespan_context(app), browser_client(app) as client:
        assert (await client.get("/en/courses/small/first")).status_code == 200
        not_ready = (await client.get("/readyz")).json()
        refused = await client.post("/runs", json={"lesson": LESSON, "cell": "hello", "code": "print(1)"})

    assert (not_ready["missing"], not_ready["reasons"]) == (["database"], {"database": "database_unavailable"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "database_unavailable")
    assert refused.headers["retry-after"] == "10"
    assert not supervisor.submitted


async def test_no_lessons_are_missed(settings: Settings, supervisor: ScriptedSupervisor) -> None:
    empty = settings.data_dir / "nothing"
    empty.mkdir()
    app = create_app(settings.model_copy(update={"lessons_dir": empty}))
    async with app.router.lifespan_context(app), browser_client(app) as client:
        assert (await client.get("/readyz")).json()["missing"] == ["lessons"]
