"""Zygotes killed while they start, and supervisors killed after other processes, replaced at once, or under Jupyter."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator

import pytest

from runners.wire.protocol import Outcome
from tests.factories.jupyter_kernels import install_kernels, started, told
from tests.factories.killed_supervisor import expect_an_end_with_the_sessions
from tests.factories.real_supervisor import RealSupervisor, SessionClient


@pytest.fixture(scope="module")
def _mortal() -> Iterator[RealSupervisor]:
    node = RealSupervisor(limits__run_s=60, limits__processes=256)
    yield node
    node.remove()


@pytest.fixture
def mortal(_mortal: RealSupervisor) -> RealSupervisor:
    """A node that may be killed; it is restarted for the next test."""
    return _mortal if _mortal.alive else _mortal.start()


BUSY = "import time\nprint('going', flush=True)\nfor _ in range(100): time.sleep(0.01)\nprint('done')"


async def test_a_zygote_killed_twice_is_replaced_and_neither_old_nor_new_sessions_notice(
    mortal: RealSupervisor,
) -> None:
    async with mortal.client() as client:
        old = SessionClient(client)
        await old.run("x = 1")
        learners = [SessionClient(client, topology="gpu:3") for _ in range(6)]
        running = await old.submit(BUSY)
        asked = [await learner.submit("2 * 21") for learner in learners[:3]]
        (zygote,) = mortal.zygotes()
        zygote.kill()
        asked += [await learner.submit("2 * 21") for learner in learners[3:]]
        mortal.wait(lambda: [z.pid for z in mortal.zygotes()] not in ([], [zygote.pid]))
        killed = [zygote, *mortal.zygotes()]
        killed[-1].kill()  # while it starts

        told = await old.read(running)
        assert (told.outcome, told.stdout) == (Outcome.ok, "going\ndone\n")
        assert (await old.run("x")).result == "1"
        new = await asyncio.gather(*(learner.read(a) for learner, a in zip(learners, asked, strict=True)))
        assert [(t.outcome, t.result) for t in new] == [(Outcome.ok, "42")] * 6
        mortal.wait(lambda: mortal.health()["status"] == "ready")
        (third,) = mortal.zygotes()
        assert third.pid not in {z.pid for z in killed}
        await asyncio.gather(*(learner.leave() for learner in (old, *learners)))


async def test_a_supervisor_killed_after_its_outer_sandbox_takes_its_sessions_along(mortal: RealSupervisor) -> None:
    await expect_an_end_with_the_sessions(mortal, mortal.outer_sandboxes())


async def test_a_supervisor_killed_after_its_zygote_takes_its_sessions_along(mortal: RealSupervisor) -> None:
    await expect_an_end_with_the_sessions(mortal, mortal.zygotes())


async def test_a_supervisor_that_starts_in_the_moment_of_the_kill_cleans_up_too(mortal: RealSupervisor) -> None:
    async with mortal.client() as client:
        await asyncio.gather(
            *(SessionClient(client).submit("x = bytes(50_000_000)\nwhile True: pass") for _ in range(3))
        )
    folders, cgroups = mortal.folders(), mortal.cgroups()

    mortal.stop(signal.SIGKILL)
    mortal.start()
    mortal.wait(lambda: not [f for f in (*folders, *cgroups) if f.exists()], 30)


@pytest.mark.usefixtures("jupyter")
async def test_a_supervisor_that_is_killed_is_a_dead_kernel_that_can_be_restarted(mortal: RealSupervisor) -> None:
    install_kernels(mortal.socket)
    async with started("lockstep-cpu") as (manager, client):
        await told(client, "x = 1")
        mortal.stop(signal.SIGKILL)
        assert await asyncio.wait_for(manager.provisioner.wait(), 20) == -signal.SIGKILL
        mortal.start()
        await manager.restart_kernel(now=True)
        await client.wait_for_ready(timeout=60)
        assert await told(client, "print('x' in globals())") == "False\n"
