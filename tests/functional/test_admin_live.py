"""The admin page of the runner: whose sessions run, stopping one, and draining."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import select

from app.accounts.models import Account, Role
from app.admin.models import AuditEntry
from app.web.maintenance import SWITCHES
from tests.factories.accounts import signed_in_browser, store_account
from tests.factories.browser_client import browser_client, press_run
from tests.factories.course import LESSON
from tests.factories.scripted_supervisor import ScriptedSupervisor

PAGE = "/en/admin/live"
RUN = {"lesson": LESSON, "cell": "hello", "code": "print(1)"}


@pytest.fixture
async def browser(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with await signed_in_browser(app, Role.admin) as browser:
        yield browser


@pytest.fixture
async def ada(app: FastAPI) -> Account:
    return await store_account(app.state.db, name="Ada Byron")


async def entries(app: FastAPI) -> list[tuple[str, str | None]]:
    async with app.state.db.session() as session:
        found = await session.scalars(select(AuditEntry).order_by(AuditEntry.id))
        return [(entry.action, entry.account_id) for entry in found]


async def test_an_admin_sees_whose_sessions_run_and_stops_one(
    app: FastAPI, browser: httpx.AsyncClient, ada: Account, supervisor: ScriptedSupervisor
) -> None:
    supervisor.memory_bytes = 174 * 1024 * 1024
    async with await signed_in_browser(app, ada) as theirs, browser_client(app) as visitor:
        await press_run(theirs)
        (session,) = supervisor.sessions
        await press_run(visitor)
        page = (await browser.get(PAGE)).text
        assert f">@{ada.handle}</a>" in page
        assert "a visitor" in page
        assert page.count("174 MiB") == 2
        for run in supervisor.runs.values():
            await supervisor.finish(run)

    assert (await browser.post(PAGE, data={"verb": "stop", "session": session})).status_code == 303
    assert session not in supervisor.sessions
    assert len(supervisor.sessions) == 1
    assert await entries(app) == [("session_stopped", ada.id)]
    for name in (session, "nothing", "../health", ""):
        assert (await browser.post(PAGE, data={"verb": "stop", "session": name})).status_code == 409
    assert len(await entries(app)) == 1


async def test_a_drained_runner_starts_no_session_and_finishes_those_it_has(
    app: FastAPI, browser: httpx.AsyncClient, ada: Account, supervisor: ScriptedSupervisor
) -> None:
    supervisor.answer = ["done"]
    async with await signed_in_browser(app, ada) as theirs, browser_client(app) as visitor:
        await press_run(theirs)
        assert (await browser.post(PAGE, data={"verb": "drain"})).status_code == 303

        await press_run(theirs)  # in the session that it has
        refused = await visitor.post("/runs", json=RUN)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "300")
        assert refused.json()["error"]["code"] == "no_new_sessions"
        await visitor.post("/en/session", params={"lesson": LESSON})
        assert len(supervisor.sessions) == 1
        assert "No new sessions start at the moment." in (await visitor.get("/en/")).text

        assert (await browser.post(PAGE, data={"verb": "undrain"})).status_code == 303
        await press_run(visitor)
    assert [action for action, _ in await entries(app)] == ["drain_on", "drain_off"]


async def test_the_page_says_when_the_runner_is_down(app: FastAPI, browser: httpx.AsyncClient) -> None:
    page = await browser.get(PAGE)
    assert (page.status_code, "The runner is not responding." in page.text) == (200, True)
    assert (await browser.post(PAGE, data={"verb": "stop", "session": "any"})).status_code == 503


@pytest.mark.parametrize("role", [None, Role.learner, Role.instructor])
async def test_nobody_else_sees_stops_or_drains(
    app: FastAPI, supervisor: ScriptedSupervisor, ada: Account, role: Role | None
) -> None:
    async with await signed_in_browser(app, ada) as theirs:
        await press_run(theirs)
    (session,) = supervisor.sessions
    async with await signed_in_browser(app, role) if role else browser_client(app) as client:
        assert (await client.get(PAGE)).status_code == (403 if role else 401)
        for form in ({"verb": "drain"}, {"verb": "stop", "session": session}):
            assert (await client.post(PAGE, data=form)).status_code == (403 if role else 401)
    async with await signed_in_browser(app, Role.admin) as admin:
        forged = await admin.post(PAGE, data={"verb": "drain"}, headers={"sec-fetch-site": "cross-site"})
        assert forged.status_code == 403
        assert (await admin.post(PAGE, data={"verb": "launch"})).status_code == 422
    assert list(supervisor.sessions) == [session]
    assert SWITCHES.get(app).edition == ""
