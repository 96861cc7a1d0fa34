"""What learners practise in clusters: an evaluator beside the training, a slow worker, a warning before the end, and
workers of their own on two ports."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

import pytest

from runners.wire.client import RunnerClient
from runners.wire.protocol import InjectedFailure
from runners.wire.reports import PICTURE
from tests.factories.real_supervisor import SessionClient


@pytest.fixture
async def served(client: RunnerClient) -> AsyncIterator[SessionClient]:
    """A learner with one worker and two parameter servers."""
    learner = SessionClient(client, topology="ps:1+2")
    yield learner
    await learner.leave()


EVALUATED = """
import json, os
import tensorflow as tf
task = json.loads(os.environ["TF_CONFIG"])["task"]

def loss(w):
    return tf.reduce_mean((w * [1.0, 2.0] - [3.0, 6.0]) ** 2)

if task["type"] == "evaluator":
    w = tf.Variable(0.0)
    path = next(iter(tf.train.checkpoints_iterator("saved", timeout=40)))
    tf.train.Checkpoint(w=w).restore(path).assert_existing_objects_matched()
    print(os.path.basename(path), f"{float(loss(w)):.4f}")
else:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        w = tf.Variable(0.0)

    @tf.function
    def step():
        def replica_fn():
            with tf.GradientTape() as tape:
                value = loss(w)
            gradient = tape.gradient(value, w)
            w.assign_sub(0.05 * tf.distribute.get_replica_context().all_reduce("mean", gradient))
        strategy.run(replica_fn)

    for _ in range(3):
        step()
    folder = "saved" if task["index"] == 0 else f"not-kept-{task['index']}"
    tf.train.CheckpointManager(tf.train.Checkpoint(w=w), folder, max_to_keep=1).save()
    print(f"{float(loss(w)):.4f}")
"""


async def test_an_evaluator_evaluates_the_checkpoint_that_the_workers_have_saved(client: RunnerClient) -> None:
    learner = SessionClient(client, topology="workers:2+evaluator")
    told = await learner.run(EVALUATED)
    assert told.outcome == "ok", told.events[-3:]
    lanes = told.lanes("stdout")
    loss = lanes["worker 0"]
    assert 0 < float(loss) < 10
    assert lanes == {"worker 0": loss, "worker 1": loss, "evaluator": f"ckpt-1 {loss}"}
    await learner.leave()


SLOWED = """
import time
import lockstep
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()

@tf.function
def step():
    return strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("sum", tf.constant(1.0)))

lockstep.slow("worker 1", at_step=2)
total, waited = 0.0, []
for number in range(4):
    lockstep.log(number, loss=1.0)
    begun, used = time.monotonic(), time.thread_time()
    if strategy.cluster_resolver.task_id == 1:
        while time.thread_time() - used < 0.1:
            pass
    total += float(step())
    waited.append(time.monotonic() - begun)
print(total)
print("slow steps" if min(waited[2:]) > 0.3 else waited)
"""


async def test_a_worker_that_is_slowed_in_a_training_slows_all_and_changes_no_number(client: RunnerClient) -> None:
    learner = SessionClient(client, topology="workers:2")
    told = await learner.run(SLOWED)
    assert told.outcome == "ok", told.events[-3:]
    assert told.lanes("stdout") == {f"worker {n}": "8.0\nslow steps\n" for n in (0, 1)}
    members = (await client.session(learner.session)).members
    assert [member.state for member in members] == ["running", "slow"]
    assert (await learner.run("lockstep.resume('worker 1')")).outcome == "ok"
    while (await client.session(learner.session)).members[1].state != "running":  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    await learner.leave()


WARNED = """
import os, signal, sys
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
resolver = strategy.cluster_resolver
with strategy.scope():
    done = tf.Variable(0, dtype=tf.int64, trainable=False)
handler = tf.distribute.experimental.PreemptionCheckpointHandler(
    resolver, tf.train.Checkpoint(done=done), "warned",
    tf.distribute.experimental.TerminationConfig(exit_fn=lambda: sys.exit(0)),
)

@tf.function
def step():
    strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("sum", 1.0))

print("from", int(done.numpy()))
for number in range(int(done.numpy()), 8):
    if number == 3 and resolver.task_id == 1:
        os.kill(os.getpid(), signal.SIGTERM)
    handler.run(step)
    done.assign_add(1)
print("through", int(done.numpy()))
"""


async def test_warned_workers_save_the_same_step_and_resume_from_it_after_a_restart(
    client: RunnerClient,
) -> None:
    learner = SessionClient(client, topology="workers:2")
    told = await learner.run(WARNED)
    assert told.outcome == "ok", told.events[-3:]
    assert "error" not in told.kinds
    assert told.lanes("stdout") == {f"worker {n}": "from 0\n" for n in (0, 1)}

    await client.inject_failure(learner.session, InjectedFailure(task="worker 1", action="kill"))  # as the cloud would
    while (await client.session(learner.session)).members[1].state != "ended":  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    told = await learner.run(WARNED)
    assert told.outcome == "ok", told.events[-3:]
    lanes = told.lanes("stdout")
    assert lanes["worker 0"] == lanes["worker 1"]
    assert re.fullmatch(r"from [45]\nthrough 8\n", lanes["worker 0"])
    await learner.leave()


TWO_PORTS = """
import json, os, pathlib, socket, subprocess, sys
pathlib.Path("worker.py").write_text('''
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
def bring():
    context = tf.distribute.get_replica_context()
    return context.all_reduce("sum", tf.cast(context.replica_id_in_sync_group + 1, tf.float32))
print(strategy.cluster_resolver.task_id, "of", strategy.num_replicas_in_sync, float(strategy.run(tf.function(bring))))
''')
probes = [socket.socket() for _ in range(2)]
for probe in probes:
    probe.bind(("127.0.0.1", 0))
addresses = ["127.0.0.1:%d" % probe.getsockname()[1] for probe in probes]
for probe in probes:
    probe.close()
processes = []
for index in range(2):
    config = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
    processes.append(subprocess.Popen(
        [sys.executable, "worker.py"], env={**os.environ, "TF_CONFIG": json.dumps(config)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ))
for process in processes:
    out, err = process.communicate()
    print(out, end="")
    if process.returncode:
        print(err[-2000:])
"""


async def test_workers_that_a_learner_starts_on_two_ports_add_up(client: RunnerClient) -> None:
    learner = SessionClient(client, topology="cpu")
    told = await learner.run(TWO_PORTS)
    assert told.outcome == "ok", told.events[-3:]
    assert told.text == "0 of 2 3.0\n1 of 2 3.0\n"
    await learner.leave()


JOINED = """
import time
import tensorflow as tf
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
server = tf.distribute.Server(resolver.cluster_spec(), resolver.task_type, resolver.task_id)
if resolver.task_id == 0:
    time.sleep(1)
    print("computed", time.monotonic())
else:
    server.join()
    print("joined", time.monotonic())
"""


async def test_a_worker_that_joins_its_server_serves_until_nobody_else_computes(client: RunnerClient) -> None:
    learner = SessionClient(client, topology="workers:2")
    told = await learner.run(JOINED)
    await learner.leave()

    assert told.outcome == "ok", told.events[-3:]
    ended = dict(line.split() for line in told.stdout.splitlines())
    assert float(ended["joined"]) > float(ended["computed"])


SERVED = """
import lockstep
import tensorflow as tf
strategy = tf.distribute.ParameterServerStrategy(
    tf.distribute.cluster_resolver.TFConfigClusterResolver(),
    variable_partitioner=tf.distribute.experimental.partitioners.FixedShardsPartitioner(2),
)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    w = tf.Variable(tf.zeros([3, 2]), name="w")
lockstep.placement(w)

def logarithm(x):
    return tf.debugging.check_numerics(tf.math.log(x), "no number")

@tf.function
def step(x):
    return logarithm(x)
"""


async def test_each_part_of_a_variable_on_servers_is_named_and_where_it_lives(served: SessionClient) -> None:
    told = await served.run(SERVED)
    assert told.outcome == "ok", told.events[-3:]
    (picture,) = (display.data[PICTURE] for display in told.displays)
    assert picture["variables"] == [
        {"name": f"w/part_{n}", "shape": [2 - n, 2], "dtype": "float32", "kind": f"ShardedVariable {n + 1}/2",
         "devices": [f"ps {n} CPU:0"], "bytes": 16 - 8 * n}
        for n in (0, 1)
    ]  # fmt: skip


async def test_the_error_of_a_scheduled_function_shows_only_the_learners_lines(
    served: SessionClient,
) -> None:
    assert (await served.run(SERVED)).outcome == "ok"
    told = await served.run("coordinator.schedule(step, args=(tf.constant(-1.0),))\ncoordinator.join()")
    assert (told.outcome, told.error.name) == ("error", "InvalidArgumentError")
    shown = re.sub(r"\x1b\[[0-9;]*m", "", told.text + "\n".join(frame.text for frame in told.error.frames))
    for line in ("coordinator.join()", "in step\n", "in logarithm\n", "cluster_coordinator.py"):
        assert line in shown
    for not_theirs in ("/runners/", "/ipykernel/", "/IPython/", "<frozen runpy>"):
        assert not_theirs not in shown


HELD = """
import lockstep, time
import tensorflow as tf
strategy = tf.distribute.ParameterServerStrategy(tf.distribute.cluster_resolver.TFConfigClusterResolver())
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    v = tf.Variable(0.0)

@tf.function
def step():
    v.assign_add(1.0)

def poll():
    while not coordinator.done():
        time.sleep(0.05)

def train(steps, wait=coordinator.join):
    for _ in range(steps):
        coordinator.schedule(step)
    wait()

train(4)
"""


@pytest.mark.parametrize("last", ["train(20)", "train(20, wait=poll)"])
async def test_a_worker_paused_after_another_restarts_is_named_and_catches_up(client: RunnerClient, last: str) -> None:
    learner = SessionClient(client, topology="ps:2+1")
    assert (await learner.run(HELD)).outcome == "ok"
    accepted = await learner.submit(
        "lockstep.kill('worker 1')\ntrain(4)\nlockstep.restart('worker 1')\nlockstep.pause('worker 0')\n"
        f"{last}\nprint(float(v) >= 28)"
    )
    async for event in client.events(accepted.id):
        if event.kind == "notice" and event.code == "waiting-for-paused":
            assert (event.lane, event.values["other"]) == ("coordinator", "worker 0")
            await client.inject_failure(learner.session, InjectedFailure(task="worker 0", action="resume"))
    told = await learner.read(accepted)
    assert told.outcome == "ok", told.events[-3:]
    assert told.lanes("stdout") == {"coordinator": "True\n"}
    assert "waiting-for-paused" in [event.code for event in told.events if event.kind == "notice"]
    await learner.leave()


ALONE = """
import json, os, tempfile
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    total = tf.Variable(0.0, synchronization=tf.VariableSynchronization.ON_READ, aggregation=tf.VariableAggregation.SUM)
if json.loads(os.environ["TF_CONFIG"])["task"]["index"] == 0:
    tf.train.Checkpoint(total=total).save(tempfile.mkdtemp() + "/checkpoint")
"""


async def test_a_worker_that_saves_a_sum_over_all_alone_does_not_wait_forever(
    client: RunnerClient,
) -> None:
    learner = SessionClient(client, topology="workers:2")
    told = await learner.run(ALONE)
    notices = [(event.code, event.lane) for event in told.events if event.kind == "notice"]
    assert notices == [("waiting-for-done", "worker 0"), ("wait-broken-off", "worker 0")]
    assert told.outcome == "error"
    await learner.leave()
