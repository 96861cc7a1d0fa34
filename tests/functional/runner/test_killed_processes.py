"""Killed supervisors, outer sandboxes, and zygotes: sessions live on or end completely, and nothing remains."""

from __future__ import annotations

import asyncio
import shutil
import signal
from collections.abc import Iterator

import psutil
import pytest

from runners.wire.protocol import Outcome
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


async def test_a_killed_outer_sandbox_ends_its_zygote_and_is_replaced(mortal: RealSupervisor) -> None:
    if shutil.which("bwrap") is None:
        pytest.skip("there is no bubblewrap on this machine")
    mortal.wait(lambda: walls_of(mortal) and mortal.zygotes())
    walls = walls_of(mortal)
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


def walls_of(node: RealSupervisor) -> list[psutil.Process]:
    """The bubblewrap processes around its zygotes."""
    return [p for p in psutil.Process(node.pid).children() if p.name() == "bwrap"]


async def test_a_pool_that_cannot_be_filled_is_broken_and_ready_again_when_it_heals(mortal: RealSupervisor) -> None:
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


@pytest.mark.parametrize("before_it", ["nothing", "wall", "zygote"])
async def test_a_killed_supervisor_takes_its_sessions_along_whatever_died_before_it(
    mortal: RealSupervisor, before_it: str
) -> None:
    async with mortal.client() as client:
        await SessionClient(client).run("import subprocess; p = subprocess.Popen(['setsid', 'sleep', '1000'])")
        await SessionClient(client).submit("while True: pass")
    folders, cgroups = mortal.folders(), mortal.cgroups()
    assert folders
    for process in {"nothing": [], "wall": walls_of(mortal), "zygote": mortal.zygotes()}[before_it]:
        process.kill()

    mortal.stop(signal.SIGKILL)
    mortal.wait(lambda: not mortal.processes(), 10)
    mortal.start()
    mortal.wait(lambda: not [f for f in (*folders, *cgroups) if f.exists()], 10)
    assert not [p for p in psutil.disk_partitions(all=True) if p.mountpoint.startswith(str(mortal.folder))]
    async with mortal.client() as client:
        assert (await SessionClient(client).run("1 + 1")).result == "2"


async def test_a_supervisor_that_starts_in_the_moment_of_the_kill_cleans_up_too(mortal: RealSupervisor) -> None:
    async with mortal.client() as client:
        await asyncio.gather(
            *(SessionClient(client).submit("x = bytes(50_000_000)\nwhile True: pass") for _ in range(3))
        )
    folders, cgroups = mortal.folders(), mortal.cgroups()

    mortal.stop(signal.SIGKILL)
    mortal.start()
    mortal.wait(lambda: not [f for f in (*folders, *cgroups) if f.exists()], 30)


async def test_no_other_supervisor_may_serve_the_same_socket(mortal: RealSupervisor) -> None:
    command = [*mortal.command]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    _, said = await process.communicate()
    assert process.returncode
    assert b"another supervisor already serves" in said
    assert mortal.health()["status"] == "ready"


async def test_a_supervisor_that_is_asked_to_end_leaves_nothing(mortal: RealSupervisor) -> None:
    async with mortal.client() as client:
        learners = [SessionClient(client) for _ in range(3)]
        await asyncio.gather(*(x.run("1") for x in learners))
        await learners[0].submit("while True: pass")
        await learners[1].submit("import subprocess; p = subprocess.Popen(['setsid', 'sleep', '1000'])")
        assert mortal.stop(signal.SIGTERM) in (0, -signal.SIGTERM)
    assert mortal.folders() == []
    mortal.wait(lambda: not mortal.processes() and not mortal.cgroups(), 5)
