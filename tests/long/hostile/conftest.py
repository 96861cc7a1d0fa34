"""One supervisor with small limits for all hostile programs, and one innocent neighbour on it.

After each test that touched the node everything is as it was before: see ``_leaves_nothing``.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from runners.wire.client import ResourceNotFound, RunnerClient
from runners.wire.protocol import Outcome, RunAccepted, RunRequest, SessionInfo, SessionSpec
from tests.factories import short_timeouts
from tests.factories.real_supervisor import RealSupervisor, RecordedRun, SessionClient, new_name
from tests.factories.resource_snapshot import BaselineSnapshots, wait_for_cleanup

LIMITS = {
    "run_s": 60,
    "cpu_s": 60,
    "memory_mb": 512,
    "processes": 128,
    "disk_mb": 64,
    "inodes": 2000,
    "file_mb": 32,
    "open_files": 400,
    "output_mb": 1,
    "output_mb_per_s": 0.625,
    "display_mb": 0.25,
    "events": 2000,
}
LIMIT_SETTINGS: dict[str, Any] = {f"limits__{name}": value for name, value in LIMITS.items()}
IMPATIENT = (sys.executable, short_timeouts.__file__)
"""What starts the node under attack: most attacks take no notice of an interrupt."""
_GRACE_S = 15.0
"""Past its time limit a run may still take the patience before the kill, and what a busy machine needs."""


@pytest.fixture(scope="session")
def node() -> Iterator[RealSupervisor]:
    """The node under attack."""
    node = RealSupervisor(IMPATIENT, **LIMIT_SETTINGS)
    yield node.start()
    node.remove()


class Innocent:
    """A session beside all hostile ones: it lives from the first attack to the last, and none of them may affect it."""

    def __init__(self, node: RealSupervisor) -> None:
        self.session, self.owner = new_name(), new_name()
        node.ask("PUT", f"/sessions/{self.session}", {"owner": self.owner})
        node.wait(lambda: node.ask("GET", f"/sessions/{self.session}")[1]["state"] == "idle")


@pytest.fixture(scope="session")
def staying() -> Counter[int]:
    """How many sessions are meant to stay, by the process ID of their supervisor."""
    return Counter()


@pytest.fixture(scope="session")
def innocent(node: RealSupervisor, staying: Counter[int]) -> Innocent:
    """The neighbour of all attacks on the node."""
    staying[node.pid] += 1
    return Innocent(node)


@pytest.fixture(scope="session")
def first_looks() -> BaselineSnapshots:
    """The smallest snapshot of each node with this many ready kernels, with which all later ones are compared."""
    return {}


@pytest.fixture(autouse=True)
def _leaves_nothing(request: pytest.FixtureRequest, staying: Counter[int]) -> Iterator[None]:
    """After every hostile program: the same supervisor and zygote answer, and nothing of the program is left.

    No process, no cgroup, mount, folder or file; as many descriptors and threads of supervisor and zygote as before;
    the memory of both is back.
    """
    if "node" not in request.fixturenames:
        yield
        return
    node: RealSupervisor = request.getfixturevalue("node")
    first_looks: BaselineSnapshots = request.getfixturevalue("first_looks")
    if "attack" in request.fixturenames:
        request.getfixturevalue("innocent")
    sessions = staying[node.pid]
    if (node.pid, sessions) not in {key[:2] for key in first_looks}:
        wait_for_cleanup(node, first_looks, sessions)
    zygotes = {(z.pid, z.create_time()) for z in node.zygotes()}
    supervisor = node.pid
    yield
    assert node.alive
    assert node.pid == supervisor
    assert set(wait_for_cleanup(node, first_looks, sessions).zygotes) == zygotes


class Witness(RunnerClient):
    """A client that remembers its requests, so that everything is cleaned up when a test ends."""

    def __init__(self, node: RealSupervisor) -> None:
        super().__init__(node.socket)
        self._sessions: set[str] = set()
        self._runs: set[str] = set()
        self._spared = ""

    def spares(self, session: str) -> None:
        """This one shall not end with the test."""
        self._spared = session

    async def submit(self, run: RunRequest) -> RunAccepted:
        self._sessions.add(run.session)
        self._runs.add(run.id)
        return await super().submit(run)

    async def request_session(self, session: str, spec: SessionSpec) -> SessionInfo:
        self._sessions.add(session)
        return await super().request_session(session, spec)

    async def forget(self) -> None:
        """End every session, and acknowledge all events of every run, as the application does after storing them."""
        await asyncio.gather(*(self._end(session) for session in self._sessions - {self._spared}))
        for run in self._runs:
            with contextlib.suppress(ResourceNotFound):
                await self.acknowledge(run, 10**9)

    async def _end(self, session: str) -> None:
        with contextlib.suppress(ResourceNotFound):
            await self.end(session)


@pytest.fixture
async def client(node: RealSupervisor) -> AsyncIterator[Witness]:
    """A client of the node; its sessions end with the test."""
    async with Witness(node) as client:
        yield client
        await client.forget()


class Attack:
    """A hostile session beside the innocent one."""

    def __init__(self, node: RealSupervisor, client: RunnerClient, innocent: Innocent) -> None:
        self.node = node
        self.client = client
        self.hostile = SessionClient(client)
        self.neighbour = SessionClient(client, session=innocent.session, owner=innocent.owner)

    async def run(self, code: str, timeout_s: float | None = None) -> RecordedRun:
        """Run ``code`` to its end while the neighbour works; what must hold after every attack is checked here, and in
        ``_leaves_nothing`` once the test is over."""
        await self.neighbour.run("count = 0")
        attack = asyncio.create_task(self._timed(code, timeout_s))
        beside = 0
        while not attack.done() or not beside:
            told = await self.neighbour.run("count += 1\nprint(count)")
            assert (told.outcome, told.stdout) == (Outcome.ok, f"{beside + 1}\n")
            beside += 1
            await asyncio.wait({attack}, timeout=0.2)
        told, took = await attack
        assert took < (timeout_s or LIMITS["run_s"]) + _GRACE_S
        assert (await self.client.health()).status == "ready"
        again = await self.hostile.run("1 + 1", timeout_s)
        if again.outcome != Outcome.ok:  # the program may have broken its own kernel, but not for good
            await self.client.restart(self.hostile.session)
            again = await self.hostile.run("1 + 1")
        assert again.result == "2"
        return told

    async def _timed(self, code: str, timeout_s: float | None) -> tuple[RecordedRun, float]:
        began = time.monotonic()
        return await self.hostile.run(code, timeout_s), time.monotonic() - began


@pytest.fixture
async def attack(node: RealSupervisor, client: Witness, innocent: Innocent) -> Attack:
    """A hostile session and its neighbour."""
    client.spares(innocent.session)
    return Attack(node, client, innocent)
