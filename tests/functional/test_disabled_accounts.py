"""Disabling an account ends what it has going on, in every web process."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import httpx
import pytest
from typer.testing import CliRunner

from app.accounts.auth_sessions import create_auth_session
from app.accounts.models import Account
from app.accounts.session_cookie import SESSION_COOKIE
from app.cli import user
from app.db import Database
from app.main import create_app
from app.runs import disabled_accounts
from app.settings import Settings
from tests.factories.accounts import store_account
from tests.factories.browser_client import press_run
from tests.factories.http_server import serving
from tests.factories.scripted_supervisor import ScriptedSupervisor
from tests.factories.sse_client import live_stream


async def _sign_in(settings: Settings, *browsers: httpx.AsyncClient) -> Account:
    db = Database(settings.database)
    account = await store_account(db)
    async with db.writing() as session:
        token = await create_auth_session(session, account, method="password")
    await db.close()
    for browser in browsers:
        browser.cookies.set(SESSION_COOKIE, token, domain="127.0.0.1")
    return account


async def test_an_idle_session_of_a_disabled_account_ends_and_others_stay(
    settings: Settings, supervisor: ScriptedSupervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCKSTEP_DATA_DIR", str(settings.data_dir))
    monkeypatch.setattr(disabled_accounts, "SESSION_POLL_INTERVAL_S", 0.1)
    supervisor.answer = ["done"]
    async with serving(create_app(settings)) as browser:
        account = await _sign_in(settings, browser)
        await press_run(browser)
        (session,) = supervisor.sessions
        browser.cookies.clear()
        await press_run(browser)
        (visitors,) = set(supervisor.sessions) - {session}

        result = await asyncio.to_thread(CliRunner().invoke, user.app, ["disable", account.email])
        assert result.exit_code == 0, result.output
        async with asyncio.timeout(10):
            await supervisor.session_ended(session)

        assert set(supervisor.sessions) == {visitors}


async def _until_it_ends(response: httpx.Response) -> None:
    async for _ in response.aiter_bytes():
        pass


async def test_disabling_an_account_ends_its_runs_and_streams_in_every_process(
    settings: Settings, supervisor: ScriptedSupervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCKSTEP_DATA_DIR", str(settings.data_dir))
    async with AsyncExitStack() as stack:
        first, second = [await stack.enter_async_context(serving(create_app(settings))) for _ in range(2)]
        account = await _sign_in(settings, first, second)
        run = await press_run(first)
        scripted = await supervisor.run(run["id"])
        await supervisor.emit(scripted, kind="started")
        urls = (run["urls"]["stream"], "/notifications/stream")
        sse = {"accept": "text/event-stream"}
        streams = [
            await stack.enter_async_context(browser.stream("GET", url, headers=sse))
            for browser in (first, second)
            for url in urls
        ]
        assert {response.status_code for response in streams} == {200}
        first.cookies.clear()
        other = await press_run(first)
        theirs = await stack.enter_async_context(live_stream(first, other["urls"]["stream"]))

        result = await asyncio.to_thread(CliRunner().invoke, user.app, ["disable", account.email])
        assert result.exit_code == 0, result.output
        async with asyncio.timeout(10):
            await asyncio.gather(*map(_until_it_ends, streams))
            await supervisor.session_ended(scripted.request.session)

        assert scripted.stopped
        assert (await second.get("/notifications/stream", headers=sse)).text == "event: over\ndata: {}\n\n"
        assert (await second.get(f"/runs/{run['id']}")).status_code == 404
        untouched = await supervisor.run(other["id"])
        assert not untouched.stopped
        await supervisor.say(untouched, "still here\n")
        assert await anext(frame.data["text"] async for frame in theirs if frame.event == "text") == "still here\n"
        await supervisor.finish(untouched)
