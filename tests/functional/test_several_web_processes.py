"""Two web processes on one PostgreSQL: whichever answers, live features, limits and unfinished runs are right."""

from __future__ import annotations

import asyncio
import json
import secrets
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from sqlalchemy import select, update

from app.accounts.auth_sessions import create_auth_session
from app.accounts.models import Account
from app.accounts.session_cookie import SESSION_COOKIE
from app.db import Database, now
from app.notifications.models import NotificationKind
from app.notifications.service import notify
from app.progress.models import LedgerEntry
from app.rate_limit import RateLimitCounter
from app.runs.models import Run, RunEvent
from app.settings import Settings
from tests.factories.accounts import store_account
from tests.factories.browser_client import press_run
from tests.factories.course import write_course
from tests.factories.databases import delete_rows
from tests.factories.scripted_supervisor import ScriptedSupervisor
from tests.factories.sse_client import live_stream
from tests.factories.web_process import WebProcess

AT_ONCE_S = 1.0
"""How late a change by another process may be. By polling, every one would be 10 seconds late or more."""
TRIES = 5
"""On a busy machine, a process may wait for its turn: one of so many changes has to arrive at once."""
_PATIENCE_S = 60.0

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def settings(migrated_postgresql: str) -> Iterator[Settings]:
    with tempfile.TemporaryDirectory(prefix="lockstep-") as folder:
        data = Path(folder) / "data"
        data.mkdir()
        yield Settings(
            data_dir=data,
            lessons_dir=write_course(Path(folder) / "lessons"),
            runner_socket=Path(folder) / "s.sock",
            database_url=migrated_postgresql,
        )


@pytest.fixture(scope="module")
def processes(settings: Settings) -> Iterator[tuple[WebProcess, WebProcess]]:
    both = WebProcess(settings, settings.database), WebProcess(settings, settings.database)
    yield both
    for process in both:
        process.kill()


@pytest.fixture
def webs(processes: tuple[WebProcess, WebProcess], db: Database) -> tuple[WebProcess, WebProcess]:
    """Both processes, running. They start on an empty database: a test before may have left maintenance mode on."""
    for process in processes:
        if not process.alive:
            process.launch()
    for process in processes:
        process.wait_until_ready()
    return processes


@pytest.fixture
async def db(settings: Settings) -> AsyncIterator[Database]:
    """The database of both, without rows."""
    db = Database(settings.database, connections=2)
    await delete_rows(db)
    yield db
    await db.close()


@pytest.fixture
async def supervisor(settings: Settings) -> AsyncIterator[ScriptedSupervisor]:
    supervisor = ScriptedSupervisor(settings.socket)
    await supervisor.start()
    yield supervisor
    await supervisor.stop()


async def sign_in(db: Database, client: httpx.AsyncClient, account: Account) -> None:
    async with db.writing() as session:
        token = await create_auth_session(session, account, method="password", user_agent="A", ip_address="192.0.2.1")
    client.cookies.set(SESSION_COOKIE, token)


async def test_the_bell_counts_at_once_in_a_process_that_did_not_write(
    webs: tuple[WebProcess, WebProcess], db: Database
) -> None:
    one, other = webs
    ada, bob = await store_account(db), await store_account(db, name="Bob")
    rung_s, read_s = [], []
    async with one.visitor() as reader, other.visitor() as writer:
        await sign_in(db, reader, ada)
        await sign_in(db, writer, ada)
        async with (
            asyncio.timeout(_PATIENCE_S),
            live_stream(reader, "/notifications/stream", headers={"accept": "text/event-stream"}) as counts,
        ):

            async def count() -> int:
                return int(str((await anext(counts)).data))

            assert await count() == 0
            for _ in range(TRIES):
                async with db.writing() as session:
                    await notify(session, [ada.id], NotificationKind.reply, secrets.token_hex(8), bob.id)
                begun = time.monotonic()
                assert await count() == 1
                rung_s.append(time.monotonic() - begun)
                read = await writer.post("/en/notifications/read")
                assert read.status_code == 303, read.text
                begun = time.monotonic()
                assert await count() == 0
                read_s.append(time.monotonic() - begun)

    assert min(rung_s) < AT_ONCE_S
    assert min(read_s) < AT_ONCE_S


async def test_output_arrives_at_once_in_a_process_that_did_not_start_the_run(
    webs: tuple[WebProcess, WebProcess], db: Database, supervisor: ScriptedSupervisor
) -> None:
    one, other = webs
    late_s = []
    async with one.visitor() as author, other.visitor() as reader:
        run = await press_run(author)
        scripted = await supervisor.run(run["id"])
        reader.cookies.update(author.cookies)
        async with asyncio.timeout(_PATIENCE_S), live_stream(reader, run["urls"]["stream"]) as frames:
            for number in range(TRIES):
                await supervisor.say(scripted, f"{number}\n")
                begun = time.monotonic()
                while (await anext(frames)).event != "text":
                    pass
                late_s.append(time.monotonic() - begun)
            await supervisor.finish(scripted)

    assert min(late_s) < AT_ONCE_S


async def test_wrong_passwords_are_counted_across_processes(webs: tuple[WebProcess, WebProcess], db: Database) -> None:
    ada = await store_account(db, email="ada@example.org")
    form = {"email": ada.email, "password": "not the password"}

    async def guess(web: WebProcess) -> int:
        async with web.visitor() as browser:
            return (await browser.post("/en/sign-in", data=form)).status_code

    assert [await guess(webs[number % 2]) for number in range(5)] == [422] * 5
    async with db.writing() as session:  # the wait of two seconds must not be over, however slow the processes are
        await session.execute(update(RateLimitCounter).values(last_at=now() + timedelta(hours=1)))
    assert [await guess(web) for web in webs] == [429, 429]


async def finished(db: Database, run_id: str) -> Run:
    """The run, once it has finished. Nobody else looks."""
    async with asyncio.timeout(_PATIENCE_S):
        while True:
            async with db.session() as session:
                run = await session.get_one(Run, run_id)
            if run.finished:
                return run
            await asyncio.sleep(0.05)


async def test_a_run_whose_process_was_killed_ends_with_every_line_and_one_award(
    webs: tuple[WebProcess, WebProcess], db: Database, supervisor: ScriptedSupervisor
) -> None:
    one, _other = webs
    lines = [f"{number}\n" for number in range(40)]
    async with one.visitor() as author:
        run = await press_run(author)
    scripted = await supervisor.run(run["id"])
    await supervisor.say(scripted, *lines[:20])
    one.kill()
    await supervisor.say(scripted, *lines[20:])
    await supervisor.finish(scripted)

    end = await finished(db, run["id"])

    assert end.outcome == "ok"
    async with db.session() as session:
        events = (await session.scalars(select(RunEvent).filter_by(run_id=end.id).order_by(RunEvent.seq))).all()
        earned = select(LedgerEntry).filter_by(learner_id=end.learner_id, kind="cell")
        awards = (await session.scalars(earned)).all()
    assert "".join(json.loads(event.payload).get("text", "") for event in events) == "".join(lines)
    assert [event.seq for event in events] == list(range(1, end.last_seq + 1))
    assert [(award.subject, award.xp) for award in awards] == [("small/first#hello", 2)]
    assert supervisor.submitted == [run["id"]]
