"""Cells in clusters: every worker runs them, each in its lane."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from runners.wire.client import RequestRefused, RunnerClient
from runners.wire.protocol import InjectedFailure, PendingFailure
from tests.factories.real_supervisor import SessionClient

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


@pytest.fixture
async def workers(client: RunnerClient) -> AsyncIterator[SessionClient]:
    """A learner in a session on two workers."""
    learner = SessionClient(client, topology="workers:2")
    yield learner
    await learner.leave()


async def test_every_worker_runs_the_cell_in_its_lane_and_in_order(workers: SessionClient) -> None:
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
    assert told.lanes() == {f"worker {n}": f"before\nafter\nfrom a child of {n}\n" for n in (0, 1)}
    for n in (0, 1):
        own = [e for e in told.events if e.kind in ("text", "display") and e.lane == f"worker {n}"]
        order = "".join(e.text if e.kind == "text" else f"{e.data['text/plain']}\n" for e in own).splitlines()
        assert order == ["before", f"{{'me': {n}}}", "after", f"from a child of {n}", str(n)]
    told = await workers.run("import time; time.sleep(0.5 * me); print('x' * 100_000)")
    assert {lane: len(text) for lane, text in told.lanes().items()} == {"worker 0": 100_001, "worker 1": 100_001}


async def test_an_error_in_one_worker_is_the_cells_and_its_traceback_is_in_its_lane(workers: SessionClient) -> None:
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


@pytest.mark.parametrize("who", ["me == 0", "me == 1", "True"])
async def test_a_script_that_ends_itself_well_ends_quietly_on_every_worker(workers: SessionClient, who: str) -> None:
    await workers.run("import json, os, sys; me = json.loads(os.environ['TF_CONFIG'])['task']['index']")
    told = await workers.run(f"print('on')\nif {who}:\n    sys.exit(0)")
    assert told.outcome == "ok"
    assert set(told.kinds) == {"started", "text", "finished"}
    assert told.lanes() == {f"worker {n}": "on\n" for n in (0, 1)}
    told = await workers.run("if me == 0:\n    sys.exit(0)\nraise ValueError('only here')")
    assert [(e.lane, e.name, e.value) for e in told.events if e.kind == "error"] == [
        ("worker 1", "ValueError", "only here"),
        (None, "ValueError", "in worker 1: only here"),
    ]


async def test_workers_train_together_and_a_strategy_can_be_made_twice(workers: SessionClient) -> None:
    told = await workers.run(COLLECTIVE)
    assert told.outcome == "ok"
    lines = {lane: sorted(text.splitlines()) for lane, text in told.lanes().items()}  # of two streams
    assert lines == {f"worker {n}": ["2 replicas, 4.0", f"mine {n + 1} of 3"] for n in (0, 1)}
    again = await workers.run(COLLECTIVE)
    assert again.outcome == "ok"
    assert all("2 replicas, 4.0\n" in text for text in again.lanes().values())


async def test_an_interrupt_reaches_every_worker_and_the_session_goes_on(workers: SessionClient) -> None:
    await workers.run("import json, os, time; me = json.loads(os.environ['TF_CONFIG'])['task']['index']")
    accepted = await workers.submit("print('begun')\nif me == 1:\n    time.sleep(100)")
    begun = set()
    async for event in workers.client.events(accepted.id):
        if event.kind == "text" and event.lane not in begun:
            begun.add(event.lane)
            if len(begun) == 2:
                await workers.client.stop(accepted.id)
    told = await workers.read(accepted)
    assert told.outcome == "interrupted"
    assert (await workers.client.session(workers.session)).generation == 0
    assert (await workers.run("print(me)")).lanes() == {"worker 0": "0\n", "worker 1": "1\n"}


async def test_every_worker_imports_what_lies_in_the_learners_folder(workers: SessionClient) -> None:
    await workers.run("import pathlib\npathlib.Path('of_mine.py').write_text('answer = 42')")
    told = await workers.run("import of_mine\nprint(of_mine.answer)")
    assert told.lanes() == {"worker 0": "42\n", "worker 1": "42\n"}


STEPS = """
import json, os, time
import lockstep
import tensorflow as tf
me = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
strategy = tf.distribute.MultiWorkerMirroredStrategy()

@tf.function
def step():
    return strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("sum", tf.constant(1.0)))
"""


async def test_a_worker_pauses_at_its_step_is_waited_for_by_name_and_goes_on(workers: SessionClient) -> None:
    assert (await workers.run(STEPS)).outcome == "ok"
    await workers.client.inject_failure(workers.session, InjectedFailure(task="worker 1", action="pause", at_step=2))
    accepted = await workers.submit("for i in range(4):\n    lockstep.log(i, loss=1.0)\n    step()\nprint('through')")
    async for event in workers.client.events(accepted.id):
        if event.kind == "notice" and event.code == "waiting-for-paused":
            states = {m.task: m.state for m in (await workers.client.session(workers.session)).members}
            assert states == {"worker 0": "running", "worker 1": "paused"}
            assert (event.lane, event.values["other"]) == ("worker 0", "worker 1")
            await workers.client.inject_failure(workers.session, InjectedFailure(task="worker 1", action="resume"))
    told = await workers.read(accepted)
    assert told.outcome == "ok"
    assert "notice" in told.kinds
    assert told.lanes() == {"worker 0": "through\n", "worker 1": "through\n"}


async def test_a_killed_worker_is_named_and_the_whole_cluster_is_restarted(workers: SessionClient) -> None:
    await workers.run(STEPS)
    train = "for i in range(3):\n    lockstep.log(i, loss=1)\n    step()"
    told = await workers.run(f"lockstep.kill('worker 1', at_step=1)\n{train}")
    assert told.outcome == "error"
    codes = [(e.code, e.lane) for e in told.events if e.kind == "notice"]
    assert ("member-ended", "worker 1") in codes
    assert ("waiting-for-ended", "worker 0") in codes
    with pytest.raises(RequestRefused, match="has ended"):
        await workers.client.inject_failure(workers.session, InjectedFailure(task="worker 1", action="pause"))
    told = await workers.run("print('me' in globals())")
    assert [e.code for e in told.events if e.kind == "notice"] == ["cluster-restarted"]
    assert told.lanes() == {"worker 0": "False\n", "worker 1": "False\n"}
    with pytest.raises(RequestRefused, match="there is no ps 0"):
        await workers.client.inject_failure(workers.session, InjectedFailure(task="ps 0", action="kill"))


async def test_a_failure_waits_for_the_next_run_which_starts_the_cluster_again(workers: SessionClient) -> None:
    assert (await workers.run("import lockstep")).outcome == "ok"
    await workers.client.inject_failure(workers.session, InjectedFailure(task="worker 1", action="kill"))
    later = InjectedFailure(task="worker 1", action="kill", at_step=2)
    waiting = await workers.client.inject_failure(workers.session, later)
    assert (waiting.members[1].state, waiting.members[1].scheduled) == (
        "ended",
        PendingFailure(action="kill", at_step=2),
    )

    train = "import lockstep\nfor i in range(4):\n    lockstep.log(i, loss=1.0)\n    print(i, flush=True)"
    told = await workers.run(train)

    notices = [event.code for event in told.events if event.kind == "notice"]
    assert notices == ["cluster-restarted", "member-ended"]
    assert told.lanes() == {"worker 0": "0\n1\n2\n3\n", "worker 1": "0\n1\n"}
    while (await workers.client.session(workers.session)).members[1].state != "ended":  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    again = await workers.run(train)
    assert again.outcome == "ok"


async def test_an_evaluator_that_has_ended_comes_back_alone_and_a_paused_one_is_named(client: RunnerClient) -> None:
    learner = SessionClient(client, topology="workers:1+evaluator")
    assert (await learner.run("kept = 1")).outcome == "ok"
    await client.inject_failure(learner.session, InjectedFailure(task="evaluator", action="kill"))
    while (await client.session(learner.session)).members[1].state != "ended":  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    told = await learner.run("print('kept' in globals())")
    assert told.outcome == "ok"
    assert "member-restarted" in [e.code for e in told.events if e.kind == "notice"]
    assert told.lanes() == {"worker 0": "True\n", "evaluator": "False\n"}
    await client.inject_failure(learner.session, InjectedFailure(task="evaluator", action="pause"))
    accepted = await learner.submit("print('on')")
    async for event in client.events(accepted.id):
        if event.kind == "notice":
            assert (event.code, event.values["other"]) == ("waiting-for-paused", "evaluator")
            await client.inject_failure(learner.session, InjectedFailure(task="evaluator", action="resume"))
    told = await learner.read(accepted)
    assert told.outcome == "ok"
    assert "notice" in told.kinds
    await learner.leave()


async def test_the_answer_to_a_fault_shows_it_done(workers: SessionClient) -> None:
    assert (await workers.run("1")).outcome == "ok"

    killed = await workers.client.inject_failure(workers.session, InjectedFailure(task="worker 1", action="kill"))
    assert [member.state for member in killed.members] == ["running", "ended"]
    started = await workers.client.inject_failure(workers.session, InjectedFailure(task="worker 1", action="restart"))
    assert [member.state for member in started.members] == ["running", "running"]


@pytest.mark.parametrize("by", ["the panel", "the program"])
async def test_a_worker_that_was_restarted_alone_cannot_go_on_with_the_old_ones(
    workers: SessionClient, by: str
) -> None:
    assert (await workers.run("kept = 1")).outcome == "ok"
    if by == "the program":
        await workers.run(
            "import json, os, lockstep\nif json.loads(os.environ['TF_CONFIG'])['task']['index'] == 0:\n"
            "    lockstep.kill('worker 1')\n    lockstep.restart('worker 1')"
        )
    else:
        for action in ("kill", "restart"):
            failure = InjectedFailure.model_validate({"task": "worker 1", "action": action})
            await workers.client.inject_failure(workers.session, failure)

    told = await workers.run("print('kept' in globals())")
    assert [e.code for e in told.events if e.kind == "notice"] == ["cluster-restarted"]
    assert told.lanes() == {"worker 0": "False\n", "worker 1": "False\n"}
    told = await workers.run("print('kept' in globals())")
    assert [e.code for e in told.events if e.kind == "notice"] == []


async def test_a_pending_failure_can_be_canceled_and_does_not_happen(workers: SessionClient) -> None:
    assert (await workers.run("import lockstep")).outcome == "ok"
    scheduled = await workers.client.inject_failure(
        workers.session, InjectedFailure(task="worker 1", action="kill", at_step=2)
    )
    assert scheduled.members[1].scheduled == PendingFailure(action="kill", at_step=2)

    taken_back = await workers.client.inject_failure(workers.session, InjectedFailure(task="worker 1", action="cancel"))

    assert taken_back.members[1].scheduled is None
    with pytest.raises(RequestRefused, match="canceled already"):
        await workers.client.inject_failure(workers.session, InjectedFailure(task="worker 1", action="cancel"))
    told = await workers.run("for i in range(5):\n    lockstep.log(i, loss=1.0)\nprint('through')")
    assert told.outcome == "ok"
    assert told.lanes() == {"worker 0": "through\n", "worker 1": "through\n"}


async def test_a_step_that_is_past_is_refused_in_its_run_and_awaited_before_the_next(workers: SessionClient) -> None:
    assert (await workers.run("import lockstep, time")).outcome == "ok"
    accepted = await workers.submit("lockstep.log(7, loss=1.0)\nprint('at 7')\ntime.sleep(100)")
    printed = set()
    async for event in workers.client.events(accepted.id):
        if event.kind == "text":
            printed.add(event.lane)
        if len(printed) == 2:
            break
    with pytest.raises(RequestRefused, match="is past step 5"):
        await workers.client.inject_failure(workers.session, InjectedFailure(task="worker 1", action="kill", at_step=5))
    await workers.client.stop(accepted.id)
    assert (await workers.read(accepted)).outcome == "interrupted"

    later = await workers.client.inject_failure(
        workers.session, InjectedFailure(task="worker 1", action="kill", at_step=5)
    )
    assert [member.state for member in later.members] == ["running", "running"]
    assert later.members[1].scheduled == PendingFailure(action="kill", at_step=5)


async def test_a_loop_that_counts_no_steps_leaves_a_fault_waiting_where_it_can_be_seen(workers: SessionClient) -> None:
    assert (await workers.run("1")).outcome == "ok"
    await workers.client.inject_failure(workers.session, InjectedFailure(task="worker 1", action="kill", at_step=3))

    told = await workers.run("for i in range(10):\n    pass")

    assert told.outcome == "ok"
    notices = [(event.code, event.values) for event in told.events if event.kind == "notice"]
    assert notices == [("no-steps-counted", {"task": "worker 1"})]
    (_, worker) = (await workers.client.session(workers.session)).members
    assert (worker.state, worker.step, worker.scheduled) == ("running", None, PendingFailure(action="kill", at_step=3))
    counted = await workers.run("import lockstep\nlockstep.log(1, loss=1.0)")
    assert [event for event in counted.events if event.kind == "notice"] == [], "it has counted, however fast it was"


async def test_who_serves_a_coordinator_counts_no_steps(client: RunnerClient) -> None:
    learner = SessionClient(client, topology="ps:1+1")
    assert (await learner.run("1")).outcome == "ok"
    with pytest.raises(RequestRefused, match="counts no steps"):
        await client.inject_failure(learner.session, InjectedFailure(task="worker 0", action="kill", at_step=3))
    members = (await client.session(learner.session)).members
    assert [member.serves for member in members] == [False, True, True]
    await learner.leave()


async def test_a_run_says_that_the_notebooks_own_process_is_paused(workers: SessionClient) -> None:
    assert (await workers.run("1")).outcome == "ok"
    await workers.client.inject_failure(workers.session, InjectedFailure(task="worker 0", action="pause"))
    while (await workers.client.session(workers.session)).members[0].state != "paused":  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    accepted = await workers.submit("print('on')")
    async for event in workers.client.events(accepted.id):
        if event.kind == "notice" and event.code == "member-paused":
            await workers.client.inject_failure(workers.session, InjectedFailure(task="worker 0", action="resume"))
    told = await workers.read(accepted)
    assert told.outcome == "ok"
    assert "notice" in told.kinds


async def test_a_run_stops_while_one_waits_for_another_and_the_session_lives_on(workers: SessionClient) -> None:
    await workers.run(STEPS)
    accepted = await workers.submit("print('begun', flush=True)\nif me:\n    time.sleep(100)\nstep()")
    async for event in workers.client.events(accepted.id):
        if event.kind == "text" and event.lane == "worker 0":
            await workers.client.stop(accepted.id)
    assert (await workers.read(accepted)).outcome == "interrupted"
    again = await workers.run(f"{STEPS}\nprint(float(step()))")
    assert again.lanes()["worker 0"].endswith("2.0\n")
    assert (await workers.client.session(workers.session)).generation == 0


async def test_parameter_servers_serve_a_coordinator_and_a_killed_worker_comes_back(client: RunnerClient) -> None:
    learner = SessionClient(client, topology="ps:2+1")
    told = await learner.run("""
import lockstep, time
import tensorflow as tf
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
partitioner = tf.distribute.experimental.partitioners.FixedShardsPartitioner(1)
strategy = tf.distribute.ParameterServerStrategy(resolver, variable_partitioner=partitioner)
with strategy.scope():
    v = tf.Variable([0.0, 0.0])
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)

@tf.function
def step():
    v.assign_add([1.0, 1.0])
    tf.print("worked")

def train(steps, kill_at=None):
    for i in range(steps):
        if i == kill_at:
            lockstep.kill("worker 1")
        coordinator.schedule(step)
        time.sleep(0.03)
    coordinator.join()
    print("at least", steps, bool(v.read_value()[0] >= steps))
train(10)
""")
    assert told.outcome == "ok"
    lanes = told.lanes()
    assert lanes["coordinator"] == "at least 10 True\n"
    worked = [text for lane, text in lanes.items() if lane != "coordinator"]  # one worker may have done it all
    assert set("".join(worked).splitlines()) == {"worked"}
    told = await learner.run("train(20, kill_at=5)")
    assert told.outcome == "ok"
    assert ("member-ended", "worker 1") in [(e.code, e.lane) for e in told.events if e.kind == "notice"]
    told = await learner.run("train(20)")
    assert "member-restarted" in [e.code for e in told.events if e.kind == "notice"]
    members = (await client.session(learner.session)).members
    assert [(m.task, m.state) for m in members] == [
        (t, "running") for t in ("coordinator", "worker 0", "worker 1", "ps 0")
    ]
    await learner.leave()


async def test_every_worker_has_its_gpus_and_each_replica_its_lane(client: RunnerClient) -> None:
    learner = SessionClient(client, topology="workers:2xgpu:2")
    told = await learner.run(COLLECTIVE)
    assert told.outcome == "ok"
    lanes = told.lanes()
    assert {lane: text for lane, text in lanes.items() if lane and "replica" in lane} == {
        f"worker {n // 2} · replica {n}": f"mine {n + 1} of 10\n" for n in range(4)
    }
    assert all("4 replicas, 11.0\n" in lanes[f"worker {n}"] for n in (0, 1))
    await learner.leave()


LOCAL = """
local = tf.distribute.MirroredStrategy()

@tf.function
def local_step():
    total = local.run(lambda: tf.distribute.get_replica_context().all_reduce("sum", tf.constant(1.0)))
    return local.reduce("mean", total, axis=None)

print(local.num_replicas_in_sync, "local,", float(local_step()))
"""


@pytest.mark.parametrize(("topology", "local"), [("workers:2", 1), ("workers:2xgpu:2", 2)])
async def test_a_mirrored_strategy_beside_that_of_all_workers_keeps_to_its_own_worker(
    client: RunnerClient, topology: str, local: int
) -> None:
    learner = SessionClient(client, topology=topology)
    assert (await learner.run(COLLECTIVE)).outcome == "ok"
    told = await learner.run(LOCAL)
    assert told.outcome == "ok"
    assert [e.code for e in told.events if e.kind == "notice"] == ["mirrored-among-workers"] * 2
    assert told.lanes() == {f"worker {n}": f"{local} local, {local}.0\n" for n in (0, 1)}
    assert (await learner.run("step(); print('together')")).outcome == "ok"
    await learner.leave()


async def test_a_worker_without_others_does_not_see_their_devices(client: RunnerClient) -> None:
    learner = SessionClient(client, topology="workers:1xgpu:2")
    assert (await learner.run(COLLECTIVE)).outcome == "ok"
    told = await learner.run(LOCAL)
    assert (told.outcome, told.text) == ("ok", "2 local, 2.0\n")
    assert "notice" not in told.kinds
    await learner.leave()


async def test_fit_of_keras_3_fails_with_a_sentence_that_offers_keras_2(workers: SessionClient) -> None:
    told = await workers.run("""
import numpy as np
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
data = tf.data.Dataset.from_tensors((np.ones((8, 2), "float32"), np.ones((8, 1), "float32"))).repeat()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
model.fit(data, steps_per_epoch=2, verbose=0)
""")
    assert told.outcome == "error"
    assert "keras-2-for-fit" in [e.code for e in told.events if e.kind == "notice"]
