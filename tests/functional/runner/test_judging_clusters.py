"""Exercises on clusters, and exported graphs: partition, recovery, counts."""

from __future__ import annotations

import pytest

from runners.wire.check_messages import NOT_AT_STEP, RAISED
from runners.wire.client import RunnerClient
from tests.functional.runner.judged import Exercise

PARTITION = Exercise(
    topology="workers:2",
    needs=(
        """
        import json, os
        import tensorflow as tf
        task = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
        """,
    ),
    solution="""
        def records(ids):
            return list(tf.data.Dataset.from_tensor_slices(ids).shard(2, task).as_numpy_iterator())
    """,
    checks="""
        @check("task", "Each record is read exactly once")
        def once(work):
            ids = work.rng.integers(10**9, size=11)
            shards = work.per_task("records", ids)
            read = sorted(int(record) for shard in shards for record in shard)
            if len(read) > len(set(read)): fail("{got} records were read twice.", got=len(read) - len(set(read)))
            equal(read, sorted(ids.tolist()))
            equal(len(shards), 2)
    """,
)
RECOVERY = Exercise(
    topology="ps:2+1",
    seconds=60,
    needs=(
        """
        import tensorflow as tf
        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        strategy = tf.distribute.ParameterServerStrategy(resolver)
        coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        """,
    ),
    solution="""
        def total(numbers):
            with strategy.scope():
                sum = tf.Variable(0.0)
            def add(n):
                sum.assign_add(n)
            for n in numbers:
                coordinator.schedule(tf.function(add), args=(tf.constant(n, tf.float32),))
            coordinator.join()
            return sum
    """,
    checks="""
        @check("task", "A killed worker changes nothing")
        def survives(work):
            numbers = [int(n) for n in work.rng.integers(1, 100, size=20)]
            want = work.reference("total", numbers)
            close(work.call("total", numbers), want)
            close(work.call("total", numbers, kill="worker 1"), want)
            close(work.call("total", numbers), want)
    """,
)
RESUMES = Exercise(
    topology="workers:2",
    needs=(
        """
        import os, time
        import lockstep
        """,
    ),
    solution="""
        def train(steps):
            done = int(open("saved").read()) if os.path.exists("saved") else 0
            for step in range(min(done, steps - 1), steps):  # the leader may be through before the worker begins
                lockstep.log(step + 1, loss=1.0)
                if LEADER:
                    with open("new", "w") as file: file.write(str(step + 1))
                    os.replace("new", "saved")  # the worker may be about to read it
                time.sleep(0.02)
            return [done > 0, step + 1]
        LEADER = '"index": 0' in os.environ["TF_CONFIG"]
    """,
    checks="""
        @check("task", "It resumes")
        def resumes(work):
            work.call("train", 60, kill="worker 1", at_step=20)
            resumed, steps = work.call("train", 100)
            if not resumed: fail("It began from the start.")
            equal(steps, 100)
    """,
)
GRAPH = Exercise(
    topology="gpu:2",
    needs=(
        """
        import tensorflow as tf
        strategy = tf.distribute.MirroredStrategy()
        weights = tf.Variable([2.0, 3.0])
        """,
    ),
    solution="""
        @tf.function
        def product(x):
            return tf.reduce_sum(x * weights)
    """,
    checks="""
        @check("task", "One product, few bytes")
        def small(work):
            x = work.rng.uniform(1, 2, size=2).astype("float32")  # the sum is never that of the products
            graph = work.graph("product", x)
            equal(graph.count("Mul"), 1)
            if graph.nbytes > 5000: fail("The graph has {got} bytes.", got=graph.nbytes)
            close(graph.result, work.reference("product", x))
    """,
)


REPLICAS = Exercise(
    topology="gpu:2",
    needs=(
        """
        import tensorflow as tf
        strategy = tf.distribute.MirroredStrategy()
        with strategy.scope():
            weight = tf.Variable(0.0)
        """,
    ),
    solution="""
        @tf.function
        def step(x):
            weight.assign(1.0)
            def on_replica():
                context = tf.distribute.get_replica_context()
                own = x[context.replica_id_in_sync_group::2]
                weight.assign_add(context.all_reduce("SUM", tf.reduce_sum(own)))
            strategy.run(on_replica)
            return strategy.experimental_local_results(weight)
    """,
    checks="""
        @check("task", "Each replica adds what all of them have")
        def added(work):
            for size in (5, 8):
                x = work.rng.normal(size=size).astype("float32")
                graph = work.graph("step", x)
                close(graph.result, [1 + x.sum()] * 2, atol=1e-4)
                equal(graph.collectives, 2)
    """,
)
TOGETHER = Exercise(
    topology="workers:2",
    seconds=60,
    needs=(
        """
        import tensorflow as tf
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
        """,
    ),
    solution="""
        def total(factor, mine):
            def on_replica():
                return tf.distribute.get_replica_context().all_reduce("SUM", factor * tf.constant(mine))
            return strategy.run(tf.function(on_replica))
    """,
    checks="""
        @check("task", "Each worker adds what all of them have")
        def added(work):
            parts = [float(part) for part in work.rng.integers(1, 100, size=2)]
            close(work.per_task("total", 2.0, own=parts), [2 * sum(parts)] * 2)
    """,
)


async def test_each_worker_is_called_with_the_argument_of_its_own(client: RunnerClient) -> None:
    told = await TOGETHER.judge(client)
    assert told.verdict == "passed", [*told.checks, told.text[-1500:]]
    told = await TOGETHER.judge(client, "def total(factor, mine): return factor * mine")
    assert told.verdict == "failed"


async def test_a_graph_with_replicas_keeps_their_variables_and_collectives(client: RunnerClient) -> None:
    told = await REPLICAS.judge(client)
    assert told.verdict == "passed", [*told.checks, told.text[-1500:]]
    alone = "@tf.function\ndef step(x): return [1 + tf.reduce_sum(x)] * 2"
    told = await REPLICAS.judge(client, alone)
    assert (told.verdict, told.checks[0].got) == ("failed", "0")


async def test_the_shards_of_workers_are_judged_together(client: RunnerClient) -> None:
    told = await PARTITION.judge(client)
    assert told.verdict == "passed", told.checks
    told = await PARTITION.judge(client, PARTITION.solution.replace(".shard(2, task)", ""))
    assert (told.verdict, told.checks[0].message) == ("failed", "{got} records were read twice.")
    assert told.checks[0].got == "11"


async def test_a_worker_that_is_killed_in_a_call_may_not_change_the_result(client: RunnerClient) -> None:
    told = await RECOVERY.judge(client)
    assert told.verdict == "passed", [*told.checks, told.text[-1500:]]


async def test_a_training_resumes_from_its_files_after_a_kill_at_a_hidden_step(client: RunnerClient) -> None:
    told = await RESUMES.judge(client)
    assert told.verdict == "passed", [*told.checks, told.text[-1500:]]
    assert "member-ended" in [event.code for event in told.events if event.kind == "notice"]
    told = await RESUMES.judge(client, RESUMES.solution.replace("if LEADER:", "if False:"))
    assert (told.verdict, told.checks[0].message) == ("failed", "It began from the start.")


async def test_a_process_that_fails_before_it_is_killed_shows_its_own_error(client: RunnerClient) -> None:
    told = await RESUMES.judge(client, RESUMES.solution.replace("done = int", "assert LEADER\n            done = int"))
    assert (told.checks[0].message, told.checks[0].values["error"]) == (RAISED, "AssertionError")
    told = await RESUMES.judge(client, RESUMES.solution.replace("lockstep.log(step + 1, loss=1.0)", "pass"))
    assert (told.checks[0].message, told.checks[0].values["task"]) == (NOT_AT_STEP, "worker 1")


async def test_a_graph_is_counted_and_run_outside_the_submissions_sandbox(client: RunnerClient) -> None:
    told = await GRAPH.judge(client)
    assert told.verdict == "passed", told.checks
    twice = GRAPH.solution.replace("x * weights", "x * weights * tf.ones(2) * tf.constant([0.5, 2.0])")
    told = await GRAPH.judge(client, twice)
    assert (told.verdict, told.checks[0].outcome) == ("failed", "failed")


@pytest.mark.parametrize(
    ("exported", "outcome"),
    [
        ("{'graph': b'garbage' * 99, 'inputs': [], 'captures': {}, 'outputs': []}", "error"),
        ("{'graph': b'', 'inputs': [], 'captures': {}, 'outputs': ['x:0']}", "error"),
        ("{'ops': {'Mul': 1}, 'nbytes': 1, 'result': 0.0}", "error"),
        ("real(tf.function(lambda x: tf.reduce_sum(x * 1.0)), args)", "failed"),
        (
            "(lambda w: real(tf.function(lambda x: tf.constant(w) * tf.ones([])), args))(args[0] @ weights.numpy())",
            "failed",
        ),
        (
            "real(tf.function(lambda x: x * tf.py_function(lambda: __import__('os')._exit(1), [], tf.float32)), args)",
            "error",
        ),
    ],
    ids=["garbage", "empty", "claimed counts", "another function", "the result itself", "Python in a graph"],
)
async def test_a_graph_that_is_none_or_does_harm_is_an_error_of_the_submission(
    client: RunnerClient, exported: str, outcome: str
) -> None:
    code = f"""
        import runners.guest.judging.graphs as graphs
        real = graphs.export
        graphs.export = lambda function, args: {exported}
        def product(x): return tf.reduce_sum(x * weights)
    """
    told = await GRAPH.judge(client, code)
    assert [(check.outcome, told.verdict) for check in told.checks] == [(outcome, "failed")], told.checks


async def test_a_function_without_a_graph_is_an_error(client: RunnerClient) -> None:
    told = await GRAPH.judge(client, "def product(x):\n    return object()")
    assert [check.outcome for check in told.checks] == ["error"]
