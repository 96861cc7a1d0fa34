"""Untrusted users where the outer sandbox is missing: the runner hears of them late, or its operator takes the risk."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.main import create_app
from app.settings import Settings
from runners.wire.protocol import Health
from tests.factories.browser_client import browser_client
from tests.factories.course import LESSON
from tests.factories.real_supervisor import RealSupervisor
from tests.factories.unprivileged_user import unprivileged_command
from tests.factories.unsandboxed_server import served_unsandboxed

UID = 62_800 + os.getpid() % 90
SENTENCE = "I accept that untrusted users can harm this machine"
RUN = {"lesson": LESSON, "cell": "hello", "code": "print(1)"}


@pytest.fixture
def bare_node() -> Iterator[RealSupervisor]:
    """A runner that has not started yet, of an unprivileged user who does not find bubblewrap."""
    node = RealSupervisor((*unprivileged_command(UID), "env", "PATH=/nothing"), warm_kernels=0)
    if os.geteuid() == 0:
        for folder in (node.folder, node.data, node.temporary):
            os.chown(folder, UID, UID)
    yield node
    node.remove()


async def test_a_runner_that_starts_after_the_server_hears_that_untrusted_users_come(
    settings: Settings, bare_node: RealSupervisor
) -> None:
    app = create_app(settings.model_copy(update={"runner_socket": bare_node.socket}))
    async with app.router.lifespan_context(app), browser_client(app) as client:
        await asyncio.to_thread(bare_node.start)
        assert not Health.model_validate(bare_node.health()).safe
        answer = await client.post("/runs", json=RUN)
        ready = await client.get("/readyz")

    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "execution_disabled")
    assert ready.json()["refuses"] == ["runs"]


async def test_an_operator_who_accepts_the_risk_literally_serves_untrusted_users(settings: Settings) -> None:
    with tempfile.TemporaryDirectory(prefix="ls-") as folder:
        place = Path(folder)
        shutil.copytree(settings.lessons_dir, place / "lessons")
        if os.geteuid() == 0:
            os.chown(place, UID, UID)
        async with served_unsandboxed(UID, place, place / "lessons", unsafe_runner=SENTENCE) as (client, *_):
            run = await client.post("/runs", json=RUN)
            stream = await client.get(run.json()["urls"]["stream"])

    assert run.status_code == 202
    assert "finished" in stream.text
