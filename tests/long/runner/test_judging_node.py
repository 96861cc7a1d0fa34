"""Judgements on a small node: room, turns, and the end of the supervisor in the middle of one."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator

import pytest

from app.cli.connect_runner import run_events
from runners.wire.client import RunnerClient
from runners.wire.protocol import SessionState
from tests.factories.real_supervisor import RealSupervisor, SessionClient
from tests.functional.runner.judged import Exercise

ONE = Exercise(
    solution="def f(x): return x + 1",
    checks="""
        @check("task", "One more")
        def more(work):
            x = int(work.rng.integers(1000))
            equal(work.call("f", x), work.reference("f", x))
    """,
)


@pytest.fixture(scope="module")
def small() -> Iterator[RealSupervisor]:
    """A node with room for two sessions, and for one judgement at a time."""
    node = RealSupervisor(max_sessions=2, max_judgements=1, eviction_grace_s=0.1, warm_topology="cpu")
    yield node.start()
    node.remove()


@pytest.fixture
async def client(small: RealSupervisor) -> AsyncIterator[RunnerClient]:
    async with small.client() as client:
        yield client


async def test_on_a_full_node_an_idle_session_makes_room_for_a_judgement(client: RunnerClient) -> None:
    learners = [SessionClient(client, topology="cpu") for _ in range(2)]
    for learner in learners:
        await learner.run("1")
    assert (await ONE.judge(client)).verdict == "passed"
    states = [(await client.session(learner.session)).state for learner in learners]
    assert states.count(SessionState.gone) == 1
    for learner in learners:
        await learner.leave()


async def test_a_class_is_judged_one_after_the_other_and_leaves_nothing_behind(
    small: RealSupervisor, client: RunnerClient
) -> None:
    told = await asyncio.gather(*(ONE.judge(client) for _ in range(6)))
    assert [each.verdict for each in told] == ["passed"] * 6
    small.wait(lambda: small.health()["sessions"] == 0)


async def test_a_queued_judgement_does_not_keep_a_run_waiting(client: RunnerClient) -> None:
    wrong = "def f(x): return 0"
    slow, queued = [await ONE.submit(client, code) for code in (f"import time; time.sleep(25)\n{wrong}", wrong)]
    learner = SessionClient(client, topology="cpu")
    assert (await learner.run("1 + 1")).result == "2"
    assert (await client.session(queued.session.id)).state == SessionState.queued
    await learner.leave()
    await client.stop(slow.id)
    assert [(await SessionClient(client).read(each)).verdict for each in (slow, queued)] == ["lost", "failed"]


async def test_a_judgement_is_lost_with_its_supervisor(small: RealSupervisor, client: RunnerClient) -> None:
    accepted = await ONE.submit(client, "print('going', flush=True)\nimport time\ntime.sleep(60)")
    kinds = []
    async for event in run_events(client, accepted.id):
        kinds.append(event.kind)
        if event.kind == "text":
            small.stop(signal.SIGKILL)
            small.start()
    assert "finished" not in kinds, "whoever follows it calls it lost"
    assert (await ONE.judge(client)).verdict == "passed"
