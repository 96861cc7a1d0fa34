"""Stored output is limited, and deleted output says so wherever it is read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import httpx
import nbformat
import pytest
from fastapi import FastAPI
from sqlalchemy import func, select

from app.db import Database, now
from app.main import create_app
from app.runs.models import Run, RunEvent
from app.runs.pruning import DeletionReason, prune_output
from app.settings import Settings
from tests.factories.accounts import signed_in_browser, store_account
from tests.factories.browser_client import press_run
from tests.factories.course import LESSON
from tests.factories.scripted_supervisor import ScriptedRun, ScriptedSupervisor
from tests.factories.stored_output import store_run_with_output

MiB = 1024 * 1024
LINE = "x" * 20_000
SMALL = {
    "stored_mb_per_visitor": 1,
    "stored_mb_per_address": 2,
    "stored_mb_per_account": 3,
    "output_retention_days": 180,
}


@pytest.fixture
async def app(settings: Settings, database: Database) -> AsyncIterator[FastAPI]:
    """The application with small quotas, on each kind of database."""
    app = create_app(settings.model_copy(update={"database_url": database.engine.url.render_as_string(False), **SMALL}))
    async with app.router.lifespan_context(app):
        yield app


async def _until_finished(client: httpx.AsyncClient, run_id: str) -> dict[str, object]:
    async with asyncio.timeout(20):
        while True:
            run: dict[str, object] = (await client.get(f"/runs/{run_id}")).json()
            if run["state"] == "finished":
                return run
            await asyncio.sleep(0.02)


async def _until_acknowledged(run: ScriptedRun) -> None:
    """The supervisor keeps what has not been acknowledged, and all runs share its memory."""
    async with asyncio.timeout(5):
        while run.acknowledged < run.last_seq:  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.01)


async def _stored(app: FastAPI) -> int:
    """Bytes of code and output in the database."""
    async with app.state.db.session() as session:
        code = await session.scalar(select(func.sum(func.length(Run.code))))
        output = await session.scalar(select(func.sum(func.length(RunEvent.payload))))
    return int(code or 0) + int(output or 0)


async def _flood(client: httpx.AsyncClient, supervisor: ScriptedSupervisor, runs: int, code: str = "1") -> list[str]:
    """Submit runs that print 200 KB each; returns how each was answered or ended."""
    supervisor.answer = [LINE] * 10
    ended = []
    for _ in range(runs):
        answer = await client.post("/runs", json={"lesson": LESSON, "cell": "hello", "code": code})
        body = answer.json()
        if answer.status_code == 202:
            ended.append(str((await _until_finished(client, body["id"]))["outcome"]))
        else:
            ended.append(body["error"]["code"])
    return ended


async def test_a_flood_of_one_visitor_stays_within_the_quota(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    ended = await _flood(client, supervisor, 9)

    assert await _stored(app) < MiB
    assert ended[:4] == ["ok"] * 4
    assert ended[-1] == "output"


async def test_a_flood_of_code_is_refused_in_words(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    ended = await _flood(client, supervisor, 14, code="#" * 99_000)

    assert await _stored(app) < 1.2 * MiB
    assert ended[-1] == "quota_reached"


async def test_output_over_the_quota_is_cut_and_the_run_says_which_limit(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    run = await press_run(client)
    scripted = await supervisor.run(run["id"])

    await supervisor.say(scripted, *[LINE] * 80)

    await _until_finished(client, run["id"])
    finished = (await client.get(run["urls"]["events"])).json()["events"][-1]
    assert finished["outcome"] == "output"
    assert finished["limit"] == {"name": "stored", "value": MiB, "unit": "bytes"}
    assert scripted.stopped
    assert await _stored(app) < MiB
    await _until_acknowledged(scripted)


async def test_many_cookies_of_one_address_are_bounded_together(
    settings: Settings, database: Database, supervisor: ScriptedSupervisor
) -> None:
    url = database.engine.url.render_as_string(False)
    app = create_app(settings.model_copy(update={"database_url": url, **SMALL}))
    transport = httpx.ASGITransport(app, client=("8.8.8.8", 1), raise_app_exceptions=False)
    ended = []
    async with app.router.lifespan_context(app):
        for _ in range(5):
            headers = {"sec-fetch-site": "same-origin"}
            async with httpx.AsyncClient(transport=transport, base_url="http://test", headers=headers) as cookie:
                ended += await _flood(cookie, supervisor, 4, code="#" * 99_000)
        stored = await _stored(app)

    assert stored < 2.2 * MiB
    assert ended[-1] == "address_quota_reached"


async def test_an_account_is_kept_within_its_own_quota_and_its_latest_output_stays(
    app: FastAPI, supervisor: ScriptedSupervisor
) -> None:
    account = await store_account(app.state.db)
    for hours in range(30, 0, -1):
        at = now() - timedelta(hours=hours)
        await store_run_with_output(app.state.db, 10, 20_000, learner_id=account.learner_id, at=at)
    latest = await store_run_with_output(app.state.db, 10, 20_000, learner_id=account.learner_id, cell="alone")
    supervisor.answer = ["done\n"]

    async with await signed_in_browser(app, account) as ada:
        run = await press_run(ada)
        await _until_finished(ada, run["id"])
        events = (await ada.get(f"/runs/{latest}/events")).json()["events"]

    assert await _stored(app) < 3 * MiB
    assert len(events) == 12
    assert {event["kind"] for event in events} == {"started", "text", "finished"}


async def test_old_output_of_an_account_is_deleted_by_the_server_itself(
    settings: Settings, supervisor: ScriptedSupervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.accounts.cleanup._FIRST_DELAY_S", (0.0, 0.0))
    db = Database(settings.database)
    account = await store_account(db)
    old = await store_run_with_output(db, learner_id=account.learner_id, at=now() - timedelta(days=400))
    late = await store_run_with_output(db, learner_id=account.learner_id, cell="alone")
    await db.close()

    app = create_app(settings)
    async with app.router.lifespan_context(app), await signed_in_browser(app, account) as ada, asyncio.timeout(10):
        while len(events := (await ada.get(f"/runs/{old}/events")).json()["events"]) != 2:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        kept = (await ada.get(f"/runs/{late}/events")).json()["events"]

    assert [event["kind"] for event in events] == ["notice", "finished"]
    assert len(kept) == 5


async def _a_pruned_run(app: FastAPI, learner: str) -> str:
    run_id = await store_run_with_output(
        app.state.db, 20, learner_id=learner, at=now() - timedelta(days=180), code="a = 1"
    )
    async with app.state.db.writing() as session:
        await prune_output(session, [run_id], DeletionReason.age)
    return run_id


@pytest.mark.parametrize("after", [0, 7, 20])
async def test_a_stream_of_a_pruned_run_ends_from_wherever_it_is_resumed(
    app: FastAPI, supervisor: ScriptedSupervisor, after: int
) -> None:
    account = await store_account(app.state.db)
    run_id = await _a_pruned_run(app, account.learner_id)

    async with await signed_in_browser(app, account) as ada, asyncio.timeout(5):
        stream = await ada.get(f"/runs/{run_id}/stream", headers={"last-event-id": str(after)})
        over = await ada.get(f"/runs/{run_id}/stream", params={"after": 22})
        events = (await ada.get(f"/runs/{run_id}/events", params={"after": after})).json()

    kinds = [line.removeprefix("event: ") for line in stream.text.split("\n") if line.startswith("event:")]
    assert kinds == ["notice", "finished"]
    assert over.status_code == 204
    assert [event["kind"] for event in events["events"]] == ["notice", "finished"]
    assert events["finished"] is True


async def test_a_display_of_a_pruned_run_says_that_it_was_deleted(app: FastAPI, supervisor: ScriptedSupervisor) -> None:
    account = await store_account(app.state.db)
    run_id = await _a_pruned_run(app, account.learner_id)

    async with await signed_in_browser(app, account) as ada:
        answer = await ada.get(f"/runs/{run_id}/displays/3", headers={"x-lockstep-lang": "ko"})

    assert answer.status_code == 410
    assert "삭제" in answer.text


async def test_a_notebook_says_that_output_was_deleted(app: FastAPI, supervisor: ScriptedSupervisor) -> None:
    account = await store_account(app.state.db)
    await _a_pruned_run(app, account.learner_id)

    async with await signed_in_browser(app, account) as ada:
        answer = await ada.get("/en/courses/small/first.ipynb", params={"with": "mine"})

    cell = next(cell for cell in nbformat.reads(answer.text, as_version=4).cells if cell.id == "cell-hello")
    assert cell.source == "a = 1"
    (output,) = cell.outputs
    assert output.text.startswith("Lockstep: The output of this run was deleted after 180 days")


async def test_an_account_s_data_says_when_output_was_deleted(app: FastAPI, supervisor: ScriptedSupervisor) -> None:
    account = await store_account(app.state.db)
    begun = now()
    run_id = await _a_pruned_run(app, account.learner_id)

    async with await signed_in_browser(app, account) as ada:
        data = (await ada.get("/en/settings/data/export")).json()

    (run,) = data["runs"]
    assert (run["id"], run["code"], run["outcome"]) == (run_id, "a = 1", "ok")
    assert begun <= datetime.fromisoformat(run["output_deleted_at"]) <= now()
