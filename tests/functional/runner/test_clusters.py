"""Cells in clusters: every worker runs them, each in its lane."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator

import pytest

from runners.client import RunnerClient
from tests.factories.node import Learner, Told

COLLECTIVE = """
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    v = tf.Variable(1.0)

@tf.function
def step():
    def replica_fn():
        context = tf.distribute.get_replica_context()
        mine = tf.cast(context.replica_id_in_sync_group + 1, tf.float32)
        total = context.all_reduce("sum", mine)
        tf.print("mine", mine, "of", total)
        v.assign_add(total)
    strategy.run(replica_fn)

step()
print(strategy.num_replicas_in_sync, "replicas,", v.numpy())
"""


def by_lane(told: Told) -> dict[str | None, str]:
    """All text of each lane, of both streams."""
    lanes: dict[str | None, str] = defaultdict(str)
    for event in told.events:
        if event.kind == "text":
            lanes[event.lane] += event.text.replace("\r", "")
    return dict(lanes)


@pytest.fixture
async def workers(client: RunnerClient) -> AsyncIterator[Learner]:
    """A learner in a session on two workers."""
    learner = Learner(client, topology="workers:2")
    yield learner
    await learner.leave()


async def test_every_worker_runs_the_cell_in_its_lane_and_in_order(workers: Learner) -> None:
    told = await workers.run("""
import json, os
from IPython.display import display
me = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
print("before")
display({"me": me})
print("after")
!echo from a child of {me}
me
""")
    assert told.outcome == "ok"
    assert by_lane(told) == {f"worker {n}": f"before\nafter\nfrom a child of {n}\n" for n in (0, 1)}
    for n in (0, 1):
        own = [e for e in told.events if e.kind in ("text", "display") and e.lane == f"worker {n}"]
        order = [e.text.split("\n")[0] if e.kind == "text" else e.data["text/plain"] for e in own]
        assert order[:3] == ["before", f"{{'me': {n}}}", "after"]
        assert order[-1] == str(n)
    told = await workers.run("import time; time.sleep(0.5 * me); print('x' * 100_000)")
    assert {lane: len(text) for lane, text in by_lane(told).items()} == {"worker 0": 100_001, "worker 1": 100_001}


async def test_an_error_in_one_worker_is_the_cells_and_its_traceback_is_in_its_lane(workers: Learner) -> None:
    await workers.run("import json, os; me = json.loads(os.environ['TF_CONFIG'])['task']['index']")
    told = await workers.run("if me == 1:\n    raise ValueError('only here')\nprint('fine')")
    assert told.outcome == "error"
    traced, summary = (e for e in told.events if e.kind == "error")
    assert (traced.lane, traced.name) == ("worker 1", "ValueError")
    assert any("only here" in frame.text for frame in traced.frames[:-1])
    assert (summary.lane, summary.name, summary.value) == (None, "ValueError", "in worker 1: only here")
    told = await workers.run("1 / 0")
    assert [e.value for e in told.events if e.kind == "error" and not e.lane] == [
        "in worker 0 and worker 1: division by zero"
    ]
    assert (await workers.run("import sys; sys.exit(0) if me == 1 else print('on')")).outcome == "ok"


async def test_workers_train_together_and_a_strategy_can_be_made_twice(workers: Learner) -> None:
    told = await workers.run(COLLECTIVE)
    assert told.outcome == "ok"
    lines = {lane: sorted(text.splitlines()) for lane, text in by_lane(told).items()}  # of two streams
    assert lines == {f"worker {n}": ["2 replicas, 4.0", f"mine {n + 1} of 3"] for n in (0, 1)}
    again = await workers.run(COLLECTIVE)
    assert again.outcome == "ok"
    assert all("2 replicas, 4.0\n" in text for text in by_lane(again).values())


async def test_an_interrupt_reaches_every_worker_and_the_session_goes_on(workers: Learner) -> None:
    await workers.run("import json, os, time; me = json.loads(os.environ['TF_CONFIG'])['task']['index']")
    accepted = await workers.submit("print('begun')\nif me == 1:\n    time.sleep(100)")
    seen = 0
    async for event in workers.client.events(accepted.id):
        seen += event.kind == "text"
        if seen == 2:
            await workers.client.stop(accepted.id)
    told = await workers.read(accepted)
    assert told.outcome == "interrupted"
    assert (await workers.client.session(workers.session)).generation == 0
    assert by_lane(await workers.run("print(me)")) == {"worker 0": "0\n", "worker 1": "1\n"}
