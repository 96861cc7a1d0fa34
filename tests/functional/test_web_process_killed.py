"""The web process is killed while a run ends: its awards are neither lost nor given twice."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from sqlalchemy import select

from app.db import Database
from app.progress.models import LedgerEntry
from app.runs.models import Run, RunEvent
from app.settings import Settings
from tests.factories.browser_client import press_run
from tests.factories.http_server import free_port
from tests.factories.scripted_supervisor import ScriptedSupervisor

_ROOT = Path(__file__).parents[2]
_KILLED_AFTER_S = (0.0, 0.01, 0.05)
_OF_THE_CLOCK = ("day", "hour")


class Web:
    """A web process on its own port, which can be killed."""

    def __init__(self, settings: Settings, database: Database) -> None:
        self.port = free_port()
        self._environment = os.environ | {
            "PYTHONPATH": str(_ROOT),
            "LOCKSTEP_DATA_DIR": str(settings.data_dir),
            "LOCKSTEP_LESSONS_DIR": str(settings.lessons_dir),
            "LOCKSTEP_RUNNER_SOCKET": str(settings.runner_socket),
            "LOCKSTEP_DATABASE_URL": database.url,
        }
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        served = ("--factory", "app.main:create_local_app", "--port", str(self.port), "--log-level", "error")
        command = (sys.executable, "-m", "uvicorn", *served)
        self._process = await asyncio.create_subprocess_exec(*command, env=self._environment, cwd=_ROOT)
        async with httpx.AsyncClient() as client, asyncio.timeout(60):
            while True:
                try:
                    await client.get(f"http://127.0.0.1:{self.port}/healthz")
                    return
                except httpx.TransportError:
                    await asyncio.sleep(0.05)

    async def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(signal.SIGKILL)
            await self._process.wait()

    @asynccontextmanager
    async def visitor(self) -> AsyncIterator[httpx.AsyncClient]:
        url = f"http://127.0.0.1:{self.port}"
        async with httpx.AsyncClient(base_url=url, headers={"origin": url}, timeout=20) as client:
            yield client


@pytest.fixture
async def web(settings: Settings, supervisor: ScriptedSupervisor, database: Database) -> AsyncIterator[Web]:
    web = Web(settings, database)
    await web.start()
    yield web
    await web.kill()


async def _awarded(db: Database, run_id: str) -> Counter[tuple[str, str, int]]:
    """The awards of the run's learner, once the run has finished."""
    async with asyncio.timeout(60):
        while True:
            async with db.session() as session:
                run = await session.get_one(Run, run_id)
                if run.finished:
                    rows = await session.scalars(select(LedgerEntry).where(LedgerEntry.learner_id == run.learner_id))
                    return Counter((row.kind, row.subject, row.xp) for row in rows if row.kind not in _OF_THE_CLOCK)
            await asyncio.sleep(0.05)


async def _sequence(db: Database, run_id: str) -> list[int]:
    async with db.session() as session:
        events = select(RunEvent.seq).where(RunEvent.run_id == run_id).order_by(RunEvent.seq)
        return list(await session.scalars(events))


@pytest.mark.timeout(300)
async def test_a_run_is_awarded_once_though_the_web_process_is_killed_while_it_ends(
    web: Web, supervisor: ScriptedSupervisor, database: Database
) -> None:
    async with web.visitor() as client:
        undisturbed = await press_run(client)
    await supervisor.finish(await supervisor.run(undisturbed["id"]))
    due = await _awarded(database, undisturbed["id"])
    assert ("cell", "small/first#hello", 2) in due

    for delay_s in _KILLED_AFTER_S:
        async with web.visitor() as client:
            run = await press_run(client)
        scripted = await supervisor.run(run["id"])
        await supervisor.say(scripted, "almost ")
        ending = asyncio.gather(supervisor.say(scripted, "there"), supervisor.finish(scripted))
        await asyncio.sleep(delay_s)
        await web.kill()
        await ending
        await web.start()

        assert await _awarded(database, run["id"]) == due
        assert await _sequence(database, run["id"]) == [1, 2, 3]
    assert len(set(supervisor.submitted)) == len(_KILLED_AFTER_S) + 1
