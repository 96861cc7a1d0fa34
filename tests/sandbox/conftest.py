"""One supervisor with small limits for all hostile programs, and an innocent neighbour on it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator

import pytest

from runners.client import RunnerClient
from runners.protocol import Outcome
from tests.factories.node import Learner, Node, Told

LIMITS = {"run_s": 8, "memory_mb": 512, "processes": 128, "disk_mb": 64, "output_mb": 1}
_ENOUGH_S = 30.0
"""The limit of a run, the patience before the kill, and a busy machine."""


@pytest.fixture(scope="session")
def node() -> Iterator[Node]:
    """The node under attack."""
    node = Node(**{f"limits__{name}": value for name, value in LIMITS.items()})
    yield node.start()
    node.remove()


@pytest.fixture
async def client(node: Node) -> AsyncIterator[RunnerClient]:
    """A client of the node."""
    async with node.client() as client:
        yield client


class Attack:
    """A hostile session beside an innocent one."""

    def __init__(self, node: Node, client: RunnerClient) -> None:
        self.node = node
        self.client = client
        self.hostile = Learner(client)
        self.neighbour = Learner(client, topology="gpu:2")

    async def run(self, code: str, timeout_s: float | None = None) -> Told:
        """Run ``code`` to its end while the neighbour works; what must hold after every attack is checked here."""
        await self.neighbour.run("count = 0")
        attack = asyncio.create_task(self._timed(code, timeout_s))
        beside = 0
        while not attack.done() or not beside:
            told = await self.neighbour.run("count += 1\nprint(count)")
            assert (told.outcome, told.stdout) == (Outcome.ok, f"{beside + 1}\n")
            beside += 1
            await asyncio.wait({attack}, timeout=0.2)
        told, took = await attack
        assert took < _ENOUGH_S
        assert (await self.client.health()).status == "ready"
        again = await self.hostile.run("1 + 1")
        if again.outcome != Outcome.ok:  # the program may have broken its own kernel, but not for good
            await self.client.restart(self.hostile.session)
            again = await self.hostile.run("1 + 1")
        assert again.result == "2"
        await self.leave_nothing()
        return told

    async def leave_nothing(self) -> None:
        """End the hostile session: no process of it, no cgroup and no folder is left."""
        await self.hostile.leave()
        await self.neighbour.leave()
        self.node.wait(lambda: self.node.health()["warm_kernels"] >= 1)
        self.node.wait(self.is_clean, 20)

    def is_clean(self) -> bool:
        """As many sandboxes, cgroups and folders as kernels wait in the pool, and nothing else."""
        waiting = self.node.health()["warm_kernels"]
        sandboxes = [f for top in self.node.folders() for f in top.iterdir()]
        groups = [g for g in self.node.cgroups() if not g.name.startswith("lockstep-")]
        inside = len(self.node.processes()) - len(self.node.zygotes())
        return len(sandboxes) == waiting and not groups and inside == 2 * waiting

    async def _timed(self, code: str, timeout_s: float | None) -> tuple[Told, float]:
        began = time.monotonic()
        return await self.hostile.run(code, timeout_s), time.monotonic() - began


@pytest.fixture
async def attack(node: Node, client: RunnerClient) -> AsyncIterator[Attack]:
    """A hostile session and its neighbour."""
    attack = Attack(node, client)
    yield attack
    for learner in (attack.hostile, attack.neighbour):
        with contextlib.suppress(Exception):
            await learner.leave()
