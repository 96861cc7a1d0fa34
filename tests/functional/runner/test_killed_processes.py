"""A killed supervisor or outer sandbox: sessions live on or end completely, and nothing remains.

``tests/long/runner`` has more processes that are killed, in more orders.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Iterator

import pytest

from tests.factories import short_timeouts
from tests.factories.killed_supervisor import expect_an_end_with_the_sessions
from tests.factories.real_supervisor import RealSupervisor, SessionClient

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def _mortal() -> Iterator[RealSupervisor]:
    hurried = (sys.executable, short_timeouts.__file__)
    node = RealSupervisor(hurried, limits__run_s=60, limits__processes=256)
    yield node
    node.remove()


@pytest.fixture
def mortal(_mortal: RealSupervisor) -> RealSupervisor:
    """A node that may be killed; it is restarted for the next test."""
    return _mortal if _mortal.alive else _mortal.start()


async def test_a_killed_outer_sandbox_ends_its_zygote_and_is_replaced(mortal: RealSupervisor) -> None:
    if shutil.which("bwrap") is None:
        pytest.skip("there is no bubblewrap on this machine")
    mortal.wait(lambda: mortal.outer_sandboxes() and mortal.zygotes())
    walls = mortal.outer_sandboxes()
    before = [z.pid for z in mortal.zygotes()]
    async with mortal.client() as client:
        learner = SessionClient(client)
        await learner.run("x = 1")
        for wall in walls:
            wall.kill()
        newcomer = SessionClient(
            client, topology="gpu:5"
        )  # no kernel waits for this one: it comes from the next zygote
        assert (await newcomer.run("2 * 21")).result == "42"
        assert not set(before) & {z.pid for z in mortal.zygotes()}
        assert (await learner.run("x = 1\nx")).result == "1"
        await asyncio.gather(learner.leave(), newcomer.leave())


async def test_a_pool_that_cannot_be_filled_is_broken_and_ready_again_when_it_heals(mortal: RealSupervisor) -> None:
    mortal.wait(lambda: mortal.health()["warm_kernels"])  # after the test before, there may be none yet
    (folder,) = mortal.folders()
    away = folder.with_name("away")
    folder.rename(away)
    try:
        async with mortal.client() as client:
            await SessionClient(client).run("1 + 1")  # takes the kernel that waited
            mortal.wait(lambda: mortal.health()["status"] == "broken", 20)
            assert "No such file" in mortal.health()["detail"]
    finally:
        away.rename(folder)
    mortal.wait(lambda: mortal.health()["status"] == "ready", 20)
    assert mortal.health()["detail"] == ""


async def test_no_other_supervisor_may_serve_the_same_socket(mortal: RealSupervisor) -> None:
    command = [*mortal.command]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    _, said = await process.communicate()
    assert process.returncode
    assert b"another supervisor already serves" in said
    mortal.wait(lambda: mortal.health()["status"] == "ready")


async def test_a_killed_supervisor_takes_its_sessions_along(mortal: RealSupervisor) -> None:
    await expect_an_end_with_the_sessions(mortal, [], and_a_run=False)
