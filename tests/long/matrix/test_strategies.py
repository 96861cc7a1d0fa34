"""Every strategy, with ``fit`` and with a loop of one's own, in both Kerases, on the machine it was made for.

"Works" means that two steps on all replicas gave the weights and the mean loss that two steps on one large batch give.
What does not gives the sentence that a learner reads. The tables in ``docs/learn/strategies.md`` are written from these
results: ``LOCKSTEP_TEST_GOLDEN=write`` rewrites them.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import textwrap
from pathlib import Path
from typing import NamedTuple

import pytest

from runners.wire.protocol import KerasVersion, NoticeEvent, Outcome
from runners.wire.topology import Topology
from tests.factories.real_supervisor import RealSupervisor, RecordedRun, SessionClient
from tests.long.matrix.matrix_programs import LIMITS, MACHINE_OF_LIMITS, ROWS, SETUP, Row

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

PAGE = Path(__file__).resolve().parents[3] / "docs" / "learn" / "strategies.md"
KERAS: tuple[KerasVersion, ...] = (3, 2)
WAYS = {"fit": "fit", "loop": "a loop of one's own"}
REPORTS_ANOTHER_LOSS = "The weights are those of one large batch; the reported loss is wrong."
CLOSE = 1e-5
"""Weights and losses of about 1 in single precision, after two steps."""


class Key(NamedTuple):
    """One cell of the table."""

    row: Row
    keras: int
    way: str


class Results(NamedTuple):
    """All results."""

    strategies: dict[Key, str]
    limits: dict[tuple[str, int], str]


@pytest.fixture(scope="module")
def results() -> Results:
    """The results of every strategy and every limitation, in one session for each machine and Keras version."""
    found = Results({}, {})
    node = RealSupervisor(
        limits__run_s=300, limits__cpu_s=600, limits__memory_mb=6000, warm_kernels=0, warm_keras="3,2"
    ).start()
    try:
        asyncio.run(_fill_all(found, node))
    finally:
        node.remove()
    return found


async def _fill_all(found: Results, node: RealSupervisor) -> None:
    """Run as many sessions at a time as there are cores: most of the time is spent in Python, on one core each."""
    turn = asyncio.Semaphore(len(os.sched_getaffinity(0)))

    async def fill(machine: str, keras: KerasVersion) -> None:
        async with turn:
            await _fill(found, node, machine, keras)

    async with asyncio.TaskGroup() as group:
        for keras, machine in itertools.product(KERAS, dict.fromkeys(row.machine for row in ROWS)):
            group.create_task(fill(machine, keras))


async def _fill(found: Results, node: RealSupervisor, machine: str, keras: KerasVersion) -> None:
    async with node.client() as client:
        learner = SessionClient(client, topology=machine, keras=keras)
        for row in ROWS:
            if row.machine == machine:
                told = await learner.run(SETUP.replace("STRATEGY", row.code))
                assert told.outcome is Outcome.ok, (row, keras, told.text)
                for way in ("loop", "fit"):  # a fit that fails may leave workers apart
                    found.strategies[Key(row, keras, way)] = _judged(await learner.run(f"{way}()"), machine)
        if machine == MACHINE_OF_LIMITS:
            for name, code in LIMITS.items():
                told = await learner.run(code)
                found.limits[name, keras] = "works" if told.outcome is Outcome.ok else _sentence(told)
        await learner.leave()


def _judged(told: RecordedRun, machine: str) -> str:
    if told.outcome is not Outcome.ok:
        return _sentence(told)
    results = re.findall(r"RESULT(\{.*?\})", told.stdout)
    topology = Topology.parse(machine)
    assert len(results) == (topology.workers if topology.kind == "workers" else 1), told.text
    (judged,) = {_judged_by_hand(json.loads(result)) for result in results}
    return judged


def _judged_by_hand(apart: dict[str, float]) -> str:
    if not apart["weights"] < CLOSE:
        return "The weights are others than those of one large batch."
    if not apart["loss"] < CLOSE:
        return REPORTS_ANOTHER_LOSS
    return "works"


def _sentence(told: RecordedRun) -> str:
    """What a learner reads: Lockstep's notice about the error, or else the beginning of the error."""
    notices = {event.text for event in told.events if isinstance(event, NoticeEvent)}
    plain = re.sub(r"\x1b\[\d*m", "", told.error.value)
    return " ".join(sorted(notices)) or textwrap.shorten(f"{told.error.name}: {plain}", 160)


def _table(rows: list[list[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in (rows[0], ["---"] * len(rows[0]), *rows[1:]))


def tables(results: Results) -> str:
    """The results in Markdown, with every sentence once, below the table."""
    sentences: list[str] = []

    def word(result: str) -> str:
        if result == "works":
            return result
        if result not in sentences:
            sentences.append(result)
        return f"[{sentences.index(result) + 1}]"

    head = ["strategy", "machine", *(f"Keras {keras}, {way}" for keras in KERAS for way in WAYS.values())]
    cells = {row: [word(results.strategies[Key(row, k, way)]) for k in KERAS for way in WAYS] for row in ROWS}
    strategies = _table([head, *([row.strategy, f"`{row.machine}`", *cells[row]] for row in ROWS)])
    limits = [["with two replicas of `MirroredStrategy`", *(f"Keras {keras}" for keras in KERAS)]]
    limits += [[name, *(word(results.limits[name, keras]) for keras in KERAS)] for name in LIMITS]
    below = "".join(f"{i}. {sentence}\n" for i, sentence in enumerate(sentences, 1))
    return f"{strategies}\n{_table(limits)}\n{below}"


def test_the_tables_in_the_documentation_are_what_came_out(results: Results) -> None:
    begin, end = "<!-- written by tests/long/matrix/test_strategies.py -->\n", "<!-- end of what it writes -->\n"
    before, _, rest = PAGE.read_text().partition(begin)
    published, _, after = rest.partition(end)
    if os.environ.get("LOCKSTEP_TEST_GOLDEN") == "write":
        PAGE.write_text(before + begin + tables(results) + end + after)
        published = tables(results)
    assert published == tables(results)


@pytest.mark.parametrize("strategy", ["Mirrored", "MultiWorkerMirrored", "CentralStorage", "TPU"])
def test_the_update_of_n_replicas_is_that_of_one_large_batch(results: Results, strategy: str) -> None:
    of_it = {key: said for key, said in results.strategies.items() if key.row.strategy == f"`{strategy}Strategy`"}
    refused = {key for key in of_it if key.row.machine.startswith("workers") and (key.keras, key.way) == (3, "fit")}

    assert len(of_it) == len(KERAS) * len(WAYS) * (3 if strategy == "MultiWorkerMirrored" else 1)
    assert {said for key, said in of_it.items() if key not in refused} <= {"works", REPORTS_ANOTHER_LOSS}


def test_what_does_not_work_says_what_to_do_instead(results: Results) -> None:
    not_working = {key: said for key, said in results.strategies.items() if said not in ("works", REPORTS_ANOTHER_LOSS)}

    assert {(key.keras, key.way, key.row.machine) for key in not_working} == {
        (3, "fit", machine) for machine in ("workers:2", "workers:2xgpu:2", "ps:2+1", "cpu")
    }
    assert all("Use Keras 2, or write your own training loop" in said for said in not_working.values())
