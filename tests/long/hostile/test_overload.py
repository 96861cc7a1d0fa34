"""More sessions than there is room for, requested by one learner and by many: each learner is told, others continue."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from runners.wire.client import RequestRefused, ResourceNotFound, RunnerClient
from runners.wire.protocol import Outcome, SessionState
from tests.factories.real_supervisor import RealSupervisor, SessionClient

ROOM, QUEUE = 2, 10 * 2


@pytest.fixture(scope="module")
def node() -> Iterator[RealSupervisor]:
    """A node with room for two sessions, and for three of one learner."""
    node = RealSupervisor(max_sessions=ROOM, sessions_per_learner=3, limits__processes=128, unstored_mb=16)
    yield node.start()
    node.remove()


async def test_one_session_more_than_the_node_holds_waits_and_then_has_its_turn(client: RunnerClient) -> None:
    here = [SessionClient(client) for _ in range(ROOM)]
    assert [told.outcome for told in await asyncio.gather(*(x.run("x = 1") for x in here))] == [Outcome.ok] * ROOM
    late = SessionClient(client)
    waiting = await late.submit("print('my turn')")
    assert (waiting.session.state, waiting.session.position) == (SessionState.queued, 1)
    assert (await here[0].run("x")).result == "1", "those who are here go on"
    await here[0].leave()
    told = await late.read(waiting)
    assert (told.outcome, told.stdout) == (Outcome.ok, "my turn\n")


async def test_a_learner_who_asks_for_hundreds_gets_a_share_and_keeps_nobody_out(
    client: RunnerClient,
) -> None:
    neighbour = SessionClient(client)
    await neighbour.run("x = 1")
    greedy = [SessionClient(client, owner="greedy") for _ in range(100)]
    for learner in greedy:
        await client.request_session(learner.session, learner.spec)
    for _ in range(200):
        if (living := sum([await _lives(learner) for learner in greedy])) <= 3:
            break
        await asyncio.sleep(0.05)  # one that was told to end takes a moment
    assert living <= 3
    assert (await client.health()).sessions <= ROOM
    assert (await neighbour.run("x")).result == "1"
    await asyncio.gather(*(learner.leave() for learner in greedy))
    newcomer = SessionClient(client)
    assert (await newcomer.run("6 * 7")).result == "42"


async def test_a_crowd_of_learners_finds_the_end_of_the_queue_and_the_node_goes_on(client: RunnerClient) -> None:
    neighbour = SessionClient(client)
    await neighbour.run("x = 1")
    crowd = [SessionClient(client) for _ in range(100)]
    asked = await asyncio.gather(*(x.client.request_session(x.session, x.spec) for x in crowd), return_exceptions=True)
    refused = [answer for answer in asked if isinstance(answer, RequestRefused)]
    assert {(r.status, r.refusal.code) for r in refused} == {(429, "node-full")}
    assert len(crowd) - len(refused) <= QUEUE + ROOM
    health = await client.health()
    assert health.sessions <= ROOM
    assert health.queued <= QUEUE
    assert (await neighbour.run("x")).result == "1"
    for learner in crowd:
        await learner.leave()
    assert (await client.health()).queued == 0


async def test_output_that_nobody_stores_fills_the_memory_of_the_supervisor_only_so_far(client: RunnerClient) -> None:
    learner = SessionClient(client)
    told = [await learner.run("for _ in range(30): print('x' * 100_000)") for _ in range(6)]
    with pytest.raises(RequestRefused, match="unstored") as refused:
        await learner.submit("1")
    assert refused.value.status == 429
    for run in told:
        await client.acknowledge(run.id, run.events[-1].seq)
    assert (await learner.run("6 * 7")).result == "42"


async def _lives(learner: SessionClient) -> bool:
    try:
        return (await learner.client.session(learner.session)).state != SessionState.gone
    except ResourceNotFound:
        return False  # gone, and forgotten
