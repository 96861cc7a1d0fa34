"""The web process restarts, or the judge or the runner is killed, while the application waits for a verdict.

There is one verdict, or a sentence and no try.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import select

from app.exercises.models import Submission
from app.main import create_app
from app.progress.models import LedgerEntry
from app.runs import event_log
from app.runs.models import RunEvent
from app.settings import Settings
from tests.factories import judged_lesson
from tests.factories.browser_client import browser_client
from tests.factories.judged_lesson import FACTOR, SHAPE
from tests.factories.real_supervisor import RealSupervisor

PANEL = "/en/courses/small/first/exercises/double"
JUDGE = "judge-at-work"
"""The file that a check leaves in the judge's sandbox."""
CHECKS = f"""
import time
from runners.checks import check, close
@check("double", "{FACTOR}")
def factor(work):
    if "slow-check" in work.source:
        open("/tmp/{JUDGE}", "w").close()
        time.sleep(25)
    x = work.rng.normal()
    close(work.call("double", x), 2 * x)
@check("double", "{SHAPE}")
def shape(work):
    x = work.rng.normal(size=3)
    close(work.call("double", x), work.reference("double", x))
"""
RIGHT = "def double(x):\n    return x + x\n"
SLOW = "import time\nprint('going', flush=True)\ntime.sleep(60)\n" + RIGHT
WAITING = "waiting"
"""The file that a submission makes: it goes on when it is gone. (From outside, no file can be made there.)"""
WAITS = (
    f"import os, time\nopen('/tmp/{WAITING}', 'w').close()\nprint('going', flush=True)\n"
    f"while os.path.exists('/tmp/{WAITING}'): time.sleep(0.05)\n{RIGHT}"
)


@pytest.fixture(scope="module")
def mortal() -> Iterator[RealSupervisor]:
    """A node that is killed, and started again."""
    node = RealSupervisor(max_sessions=4, warm_topology="cpu")
    yield node.start()
    node.remove()


@pytest.fixture
def real_settings(settings: Settings, mortal: RealSupervisor) -> Settings:
    return settings.model_copy(update={"runner_socket": mortal.socket, "submit_timeout_s": 20})


@pytest.fixture(autouse=True)
def _real_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judged_lesson, "EXERCISE", replace(judged_lesson.EXERCISE, checks_source=CHECKS))


@asynccontextmanager
async def site(settings: Settings) -> AsyncIterator[FastAPI]:
    app = create_app(settings)
    judged_lesson.add_exercise(app)
    async with app.router.lifespan_context(app):
        yield app


@pytest.fixture
async def app(real_settings: Settings) -> AsyncIterator[FastAPI]:
    async with site(real_settings) as app:
        yield app


@pytest.fixture
async def visitor(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with browser_client(app) as visitor:
        yield visitor


async def submit(client: httpx.AsyncClient, code: str) -> str:
    response = await client.post(f"{PANEL}/submissions", json={"code": code, "key": str(uuid.uuid4())})
    assert response.status_code == 202, response.text
    return str(response.json()["id"])


def sandboxes_with(node: RealSupervisor, file: str) -> list[Path]:
    """The folder ``/tmp`` of each process that sees this file there, as seen from outside."""
    folders = [Path(f"/proc/{process.split()[0]}/root/tmp") for process in node.processes()]
    return [folder for folder in folders if (folder / file).exists()]


async def until(app: FastAPI, run_id: str, kind: str) -> dict[str, Any]:
    """The first event of this kind that is stored for a run."""
    events = select(RunEvent.payload).where(RunEvent.run_id == run_id, RunEvent.kind == kind).limit(1)
    with app.state.bus.subscribe(event_log.run_topic(run_id)) as stored:
        async with asyncio.timeout(120):
            while True:
                async with app.state.db.session() as session:
                    if found := await session.scalar(events):
                        event: dict[str, Any] = json.loads(found)
                        return event
                await stored.wait(1)


async def verdicts(app: FastAPI) -> list[str | None]:
    async with app.state.db.session() as session:
        return sorted(await session.scalars(select(Submission.verdict)), key=str)


async def awards(app: FastAPI) -> list[str]:
    async with app.state.db.session() as session:
        return sorted(
            await session.scalars(select(LedgerEntry.kind).where(LedgerEntry.kind.in_(("check", "exercise"))))
        )


async def passes(app: FastAPI, visitor: httpx.AsyncClient) -> None:
    await until(app, await submit(visitor, RIGHT), "finished")


async def test_a_killed_runner_costs_no_try_and_the_next_one_is_judged_once(
    app: FastAPI, visitor: httpx.AsyncClient, mortal: RealSupervisor
) -> None:
    run_id = await submit(visitor, SLOW)
    await until(app, run_id, "text")
    mortal.stop(signal.SIGKILL)
    mortal.start()
    assert (await until(app, run_id, "finished"))["outcome"] == "lost"
    assert await verdicts(app) == ["lost"]
    panel = (await visitor.get(PANEL)).text
    assert "it does not count as a try" in panel
    assert "after 3 more failed tries" in panel
    await passes(app, visitor)
    assert await verdicts(app) == ["lost", "passed"]
    assert await awards(app) == ["check", "check", "exercise"]


async def test_a_killed_judge_is_a_fault_that_costs_no_try(
    app: FastAPI, visitor: httpx.AsyncClient, mortal: RealSupervisor
) -> None:
    run_id = await submit(visitor, RIGHT + "# slow-check")
    await asyncio.to_thread(mortal.wait, lambda: sandboxes_with(mortal, JUDGE))
    for folder in sandboxes_with(mortal, JUDGE):
        with suppress(ProcessLookupError):  # the first may be the judge's PID 1
            os.kill(int(folder.parts[2]), signal.SIGKILL)
    assert (await until(app, run_id, "finished"))["outcome"] == "ok"
    assert await verdicts(app) == ["fault"]
    panel = (await visitor.get(PANEL)).text
    assert "This is not your fault: it does not count as a try" in panel
    assert "after 3 more failed tries" in panel
    await passes(app, visitor)
    assert await verdicts(app) == ["fault", "passed"]


async def test_a_web_process_that_restarts_in_between_stores_one_verdict(
    real_settings: Settings, mortal: RealSupervisor
) -> None:
    async with site(real_settings) as app, browser_client(app) as client:
        run_id = await submit(client, WAITS)
        await until(app, run_id, "text")
    async with site(real_settings) as again:
        assert await verdicts(again) == [None]
        for folder in sandboxes_with(mortal, WAITING):
            (folder / WAITING).unlink(missing_ok=True)  # several processes see the same one
        await until(again, run_id, "finished")
        assert await verdicts(again) == ["passed"]
        assert await awards(again) == ["check", "check", "exercise"]
        async with again.state.db.session() as session:
            kinds = (await session.scalars(select(RunEvent.kind).where(RunEvent.run_id == run_id))).all()
        assert (kinds.count("check"), kinds.count("finished")) == (2, 1)
