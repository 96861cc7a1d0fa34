"""The web process is killed while a run ends: its awards are neither lost nor given twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator

import pytest
from sqlalchemy import select

from app.db import Database
from app.progress.models import LedgerEntry
from app.runs.models import Run, RunEvent
from app.settings import Settings
from tests.factories.browser_client import press_run
from tests.factories.databases import mainly_on
from tests.factories.scripted_supervisor import ScriptedSupervisor
from tests.factories.web_process import WebProcess

_KILLED_AFTER_S = {"sqlite": (0.0, 0.05), "postgresql": (0.01,)}
"""Each kill costs the start of a process; ``tests/long/soak`` kills it at random."""
_OF_THE_CLOCK = ("day", "hour")


@pytest.fixture
def web(settings: Settings, supervisor: ScriptedSupervisor, database: Database) -> Iterator[WebProcess]:
    web = WebProcess(settings, database.url)
    yield web
    web.kill()


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
@mainly_on("sqlite")
async def test_a_run_is_awarded_once_though_the_web_process_is_killed_while_it_ends(
    web: WebProcess, supervisor: ScriptedSupervisor, database: Database
) -> None:
    await web.start()
    async with web.visitor() as client:
        undisturbed = await press_run(client)
    await supervisor.finish(await supervisor.run(undisturbed["id"]))
    due = await _awarded(database, undisturbed["id"])
    assert ("cell", "small/first#hello", 2) in due

    delays_s = _KILLED_AFTER_S[database.engine.dialect.name]
    for delay_s in delays_s:
        async with web.visitor() as client:
            run = await press_run(client)
        scripted = await supervisor.run(run["id"])
        await supervisor.say(scripted, "almost ")
        ending = asyncio.gather(supervisor.say(scripted, "there"), supervisor.finish(scripted))
        await asyncio.sleep(delay_s)
        web.kill()
        await ending
        await web.start()

        assert await _awarded(database, run["id"]) == due
        assert await _sequence(database, run["id"]) == [1, 2, 3]
    assert len(set(supervisor.submitted)) == len(delays_s) + 1
