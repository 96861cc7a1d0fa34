"""Hundreds of sessions in a row, ordinary and hostile: the last leaves the node as the first found it."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from runners.wire.client import RunnerClient
from runners.wire.protocol import Outcome
from tests.factories.real_supervisor import RealSupervisor, SessionClient
from tests.factories.resource_snapshot import BaselineSnapshots, ResourceSnapshot, wait_for_cleanup
from tests.long.soak.conftest import SEED, SESSIONS
from tests.long.soak.soak_programs import HOSTILE, ORDINARY, Program

MARKS = sorted({max(1, SESSIONS // 10), SESSIONS // 2, SESSIONS})
"""After so many sessions everything is counted."""
_HOSTILE_PART = 0.35
_MOST_GROWTH = 24 * 2**20
"""Of the supervisor, in bytes, from the first mark to the last."""


@pytest.fixture
def node() -> Iterator[RealSupervisor]:
    """A node with small limits of its own: nobody else's sessions count."""
    node = RealSupervisor(
        limits__run_s=60, limits__memory_mb=512, limits__processes=96, limits__disk_mb=32, limits__output_mb=1
    )
    yield node.start()
    node.remove()


@pytest.mark.timeout(60 + 20 * SESSIONS)
async def test_after_many_sessions_nothing_has_grown_and_every_outcome_was_right(node: RealSupervisor) -> None:
    chance = random.Random(SEED)
    first_looks: BaselineSnapshots = {}
    outcomes: Counter[str] = Counter()
    looks: list[ResourceSnapshot] = []
    began = time.monotonic()
    async with node.client() as client:
        for number in range(1, SESSIONS + 1):
            await _one_session(client, chance, outcomes)
            if number in MARKS:
                looks.append(await asyncio.to_thread(wait_for_cleanup, node, first_looks))
                print(f"{number:4} sessions, {time.monotonic() - began:5.0f} s: {_in_words(looks[-1])}")
    print(dict(outcomes))
    assert looks[-1].zygotes == looks[0].zygotes, "no hostile program cost the zygote its life"
    assert looks[-1].left_behind(looks[0]) == []
    assert looks[-1].supervisor_bytes - looks[0].supervisor_bytes < _MOST_GROWTH


async def _one_session(client: RunnerClient, chance: random.Random, outcomes: Counter[str]) -> None:
    """A learner runs up to three cells, may restart in between or leave in the middle, and ends the session."""
    learner = SessionClient(client)
    for _ in range(chance.randint(1, 3)):
        program = chance.choice(HOSTILE if chance.random() < _HOSTILE_PART else ORDINARY)
        if chance.random() < 0.1:
            left = await learner.submit(program.code, program.timeout_s)
            await learner.leave()
            await client.acknowledge(left.id, (await learner.read(left)).events[-1].seq)
            outcomes["left alone"] += 1
            return
        outcomes[await _run(learner, program)] += 1
        if chance.random() < 0.15:
            await client.restart(learner.session)
        elif program in HOSTILE:
            break  # what it left behind in its own session is its own affair
    await learner.leave()


async def _run(learner: SessionClient, program: Program) -> Outcome:
    told = await learner.run(program.code, program.timeout_s)
    await learner.client.acknowledge(told.id, told.events[-1].seq)
    assert told.outcome in program.outcomes, (program.code, told.events[-3:])
    if program.stdout is not None:
        assert told.stdout == program.stdout
    return told.outcome


def _in_words(now: ResourceSnapshot) -> str:
    held = f"{sum(now.supervisor_descriptors.values())} + {sum(now.zygote_descriptors.values())} descriptors"
    sizes = f"{now.supervisor_bytes / 2**20:.1f} + {now.zygote_bytes / 2**20:.1f} MiB"
    threads = f"{now.supervisor_threads} + {now.zygote_threads} threads"
    rest = f"{now.processes} processes, {now.sandboxes} folders, {now.cgroups} cgroups, {now.mounts.total()} mounts"
    return f"{held}, {threads}, {sizes} (supervisor + zygote), {rest}; machine: {_of_the_machine()}"


def _of_the_machine() -> str:
    """Does not count: other programs work on this machine, too."""
    shared = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("Shmem:"))
    groups = 0
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/cgroups").read_text().splitlines()
        groups = int(next(line for line in lines if line.startswith("memory")).split()[2])
    return f"{shared}, {groups} memory cgroups"
