"""The visualizations of a run: metrics, progress and pictures, from real sandboxes and both versions of Keras."""

from __future__ import annotations

from typing import Any

import pytest

from runners.wire.client import RunnerClient
from runners.wire.protocol import MetricEvent, Outcome, ProgressEvent
from runners.wire.reports import PICTURE
from tests.factories.real_supervisor import RecordedRun, SessionClient

MODEL = """
import numpy as np, tensorflow as tf
tf.keras.utils.set_random_seed(1)
strategy = tf.distribute.MirroredStrategy()
def make(optimizer="sgd"):
    with strategy.scope():
        layers = tf.keras.layers
        inner = [layers.Input((6,)), layers.Dense(5, activation="relu", name="first"), layers.Dense(3, name="last")]
        model = tf.keras.Sequential(inner, name="small")
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(optimizer, loss, metrics=["accuracy"])
    return model
x, y = np.random.rand(320, 6).astype("float32"), np.random.randint(0, 3, 320)
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(32)
model = make()
"""


_SESSIONS: dict[int, str] = {}
"""The names of this module's sessions, one for each Keras: to trace a model takes longer than most tests."""


@pytest.fixture(params=[3, pytest.param(2, marks=pytest.mark.long)], ids=["keras3", "keras2"])
async def keras(request: pytest.FixtureRequest, client: RunnerClient) -> SessionClient:
    """A learner for each version of Keras, with a new small model on two simulated GPUs."""
    version = request.param
    learner = SessionClient(client, topology="gpu:2", keras=version, owner="seeing", session=_SESSIONS.get(version))
    if version not in _SESSIONS:
        _SESSIONS[version] = learner.session
        await ran(learner, MODEL)
    await ran(learner, "model = make()")
    return learner


def metrics(told: RecordedRun, per: str = "step") -> list[MetricEvent]:
    return [e for e in told.events if isinstance(e, MetricEvent) and e.per == per]


def progress(told: RecordedRun) -> list[ProgressEvent]:
    return [e for e in told.events if isinstance(e, ProgressEvent)]


def pictures(told: RecordedRun) -> list[dict[str, Any]]:
    return [d.data[PICTURE] for d in told.displays if PICTURE in d.data]


async def ran(learner: SessionClient, code: str) -> RecordedRun:
    told = await learner.run(code)
    assert told.outcome == Outcome.ok, (told.error.value, [f.text for f in told.error.frames][-3:])
    return told


async def test_fit_tells_its_numbers_and_how_far_it_is(keras: SessionClient) -> None:
    told = await ran(keras, "h = model.fit(data, epochs=3, validation_data=data, verbose=0); print(h.history)")

    history: dict[str, list[float]] = eval(told.stdout)
    epochs = metrics(told, "epoch")
    assert [e.step for e in epochs] == [1, 2, 3]
    for name, values in history.items():
        assert [e.values[name] for e in epochs] == pytest.approx(values)
    assert set(history) == {"loss", "accuracy", "val_loss", "val_accuracy"}
    steps = [e.step for e in metrics(told)]
    assert steps == sorted(steps)
    assert steps[-1] == 30
    assert metrics(told)[0].values.keys() == {"loss", "accuracy"}
    assert {e.training for e in metrics(told) + epochs} == {"small"}
    assert all(p.label == "fit" and p.unit == "step" for p in progress(told))
    assert (progress(told)[0].done, progress(told)[0].total) == (0, 30)
    assert (progress(told)[-1].done, progress(told)[-1].total) == (30, 30)


async def test_what_fit_computes_and_prints_is_what_it_would_without_being_watched(keras: SessionClient) -> None:
    code = """
    import sys
    from runners.guest.tf_patches import keras_training as training
    class Order(tf.keras.callbacks.Callback):
        def __init__(self): super().__init__(); self.calls = []
        def on_epoch_end(self, epoch, logs=None): self.calls.append((epoch, sorted(logs)))
        def on_train_batch_end(self, batch, logs=None): self.calls.append(batch)
    def train():
        tf.keras.utils.set_random_seed(7)
        order = Order()
        history = make("adam").fit(data.shuffle(64), epochs=2, callbacks=[order], verbose=2).history
        return history, order.calls, np.random.rand(), float(tf.random.uniform([]))
    def without_time(text): return [part for part in text.split() if "s" not in part or "loss" in part]
    watched = train()
    joins, training._join = training._join, lambda callbacks: None
    alone = train()
    training._join = joins
    print(watched == alone)
    """
    told = await ran(keras, "\n".join(line[4:] for line in code.splitlines()))
    assert told.stdout.endswith("True\n")


async def test_a_callback_that_fails_has_its_own_traceback(keras: SessionClient) -> None:
    told = await keras.run(
        "class Bad(tf.keras.callbacks.Callback):\n"
        "    def on_epoch_end(self, epoch, logs=None): raise KeyError('mine')\n"
        "model.fit(data, callbacks=[Bad()], verbose=0)"
    )
    assert (told.outcome, told.error.name) == (Outcome.error, "KeyError")
    assert not any("runners/kernel" in frame.text for frame in told.error.frames)


async def test_steps_per_execution_evaluate_predict_and_single_batches_are_seen_too(keras: SessionClient) -> None:
    told = await ran(
        keras,
        "one = tf.keras.Sequential([tf.keras.layers.Dense(3)])\n"
        "one.compile('sgd', 'sparse_categorical_crossentropy', metrics=['accuracy'], steps_per_execution=5)\n"
        "_ = one.fit(data, epochs=2, verbose=0)",
    )
    assert [e.step for e in metrics(told)][-1] == 20
    assert progress(told)[-1].done == 20

    told = await ran(keras, "print(model.evaluate(data, verbose=0)); model.predict(data, verbose=0)")
    assert {p.label for p in progress(told)} == {"evaluate", "predict"}
    assert metrics(told)[-1].values["test_loss"] == pytest.approx(eval(told.stdout)[0])

    told = await ran(
        keras,
        "model = make()\nfor i in range(12): result = model.train_on_batch(x[:32], y[:32])\n"
        "print([float(v) for v in result])",
    )
    last = metrics(told)[-1]
    assert last.step == 12
    assert [last.values["loss"], last.values["accuracy"]] == pytest.approx(eval(told.stdout))


async def test_a_second_fit_of_a_model_continues_and_another_model_starts_over(keras: SessionClient) -> None:
    told = await ran(keras, "for _ in range(3): model.fit(data, verbose=0)")
    assert [e.step for e in metrics(told, "epoch")] == [1, 2, 3]
    assert metrics(told)[-1].step == 30

    told = await ran(keras, "make().fit(data, verbose=0); make().fit(data, verbose=0)")
    assert [e.step for e in metrics(told, "epoch")] == [1, 1]


async def test_a_loop_of_ones_own_logs_and_shows_its_progress(keras: SessionClient) -> None:
    told = await ran(
        keras,
        "import lockstep\n"
        "for step in lockstep.progress(range(200), label='mine'):\n"
        "    lockstep.log(step, loss=tf.constant(1 / (step + 1)), accuracy=np.float32(0.5),"
        " rate=model.optimizer.learning_rate)",
    )
    last = metrics(told)[-1]
    assert last.step == 199
    assert last.values["loss"] == pytest.approx(0.005)
    assert last.values["rate"] == pytest.approx(0.01)
    assert len(metrics(told)) < 100
    assert (progress(told)[0].label, progress(told)[-1].done, progress(told)[-1].total) == ("mine", 200, 200)


async def test_printed_lines_are_numbers_unless_the_training_reports_itself(learner: SessionClient) -> None:
    told = await ran(
        learner, "for e in range(1, 4): print(f'Epoch {e}, Loss: {1 / e:.2f}, Accuracy: {30 * e}', flush=True)"
    )
    assert [(e.step, e.values) for e in metrics(told, "epoch")] == [
        (1, {"loss": 1, "accuracy": 30}),
        (2, {"loss": 0.5, "accuracy": 60}),
        (3, {"loss": 0.33, "accuracy": 90}),
    ]
    told = await ran(learner, "import tensorflow as tf\nfor e in range(1, 4): tf.print('step', e, 'loss:', 1 / e)")
    assert [metrics(told)[0].step, metrics(told)[-1].step] == [1, 3]
    told = await ran(learner, "import lockstep\nlockstep.log(1, loss=3)\nprint('step 2: loss = 2')")
    assert [e.step for e in metrics(told)] == [1]


async def test_kerass_own_words_make_no_number_twice(keras: SessionClient) -> None:
    told = await ran(keras, "_ = model.fit(data, epochs=2)\n_ = model.fit(data, epochs=2, verbose=2)")
    assert [e.step for e in metrics(told, "epoch")] == [1, 2, 3, 4]


WRONG = [
    ("lockstep.log(1)", "1 to 20 named values"),
    ("lockstep.log('a', loss=1)", "step must be a whole number"),
    ("lockstep.log(-1, loss=1)", "step counts up from 0"),
    ("lockstep.log(1, loss='0.3')", "loss must be a number"),
    ("lockstep.log(1, loss=None)", "loss must be a number"),
    ("lockstep.log(1, loss=[1, 2])", "loss must be a number"),
    ("lockstep.log(1, loss=tf.ones([2]))", "loss must be a single number, but its shape is (2,)"),
    ("lockstep.log(1, loss=tf.constant('x'))", "loss must be a number"),
    ("lockstep.progress(range(3), total='x')", "total must be a whole number"),
    ("lockstep.shards(5)", "data must be a data set"),
    ("lockstep.shards(tf.data.Dataset.range(3))", "strategy is missing"),
    ("lockstep.placement(5)", "lockstep.placement takes models"),
    ("lockstep.placement(tf.distribute.MirroredStrategy())", "pass the model to lockstep.placement"),
    ("lockstep.replay(5)", "variable must be a name"),
    ("tf.function(lambda x: lockstep.log(1, loss=x))(tf.constant(1.0))", "inside a tf.function"),
    ("lockstep.log(1, loss=strategy.run(lambda: tf.distribute.get_replica_context().replica_id_in_sync_group + 0))",
     "strategy.reduce(tf.distribute.ReduceOp.SUM, loss"),
]  # fmt: skip


async def test_a_wrong_argument_is_named(keras: SessionClient) -> None:
    told = await ran(
        keras,
        "import lockstep\n"
        f"for call in {[call for call, _ in WRONG]!r}:\n"
        "    try:\n        eval(call)\n"
        "    except (TypeError, ValueError) as e:\n        print(' '.join(str(e).split()))\n"
        "    else:\n        print('nothing was said')",
    )
    for (call, says), said in zip(WRONG, told.stdout.splitlines(), strict=True):
        assert says in said, call


async def test_the_shards_of_a_data_set_are_those_that_the_replicas_get(keras: SessionClient) -> None:
    told = await ran(
        keras,
        "import lockstep\n"
        "numbers = tf.data.Dataset.range(16).batch(8)\n"
        "lockstep.shards(numbers, strategy, batches=2)\n"
        "numbered = tf.data.Dataset.from_tensor_slices((x, y)).enumerate().batch(4)\n"
        "batch = next(iter(strategy.experimental_distribute_dataset(numbered)))\n"
        "lockstep.shards(batch)\n"
        "print(y[:4].tolist())",
    )
    plain, numbered = pictures(told)
    assert [r["examples"] for r in plain["replicas"]] == [
        [str(i) for i in (0, 1, 2, 3, 8, 9, 10, 11)],
        [str(i) for i in (4, 5, 6, 7, 12, 13, 14, 15)],
    ]
    assert [r["device"] for r in plain["replicas"]] == ["GPU:0 (simulated by CPU:0)", "GPU:1 (simulated by CPU:1)"]
    labels: list[int] = eval(told.stdout)
    assert [e for r in numbered["replicas"] for e in r["examples"]] == [f"#{i} → {labels[i]}" for i in range(4)]


async def test_placement_shows_where_each_variable_lives(keras: SessionClient) -> None:
    told = await ran(
        keras, "import lockstep\nlockstep.placement(model)\nlockstep.placement(tf.Variable([1., 2.], name='own'))"
    )
    model, own = pictures(told)
    kernel = next(v for v in model["variables"] if v["name"].endswith("first/kernel"))
    assert kernel["kind"] == "MirroredVariable"
    assert kernel["devices"] == ["GPU:0 (simulated by CPU:0)", "GPU:1 (simulated by CPU:1)"]
    assert (kernel["shape"], kernel["dtype"], kernel["bytes"]) == ([6, 5], "float32", 120)
    assert own["variables"] == [
        {"name": "own", "shape": [2], "dtype": "float32", "kind": "Variable", "devices": ["CPU:0"], "bytes": 8}
    ]


CUSTOM = """
import lockstep
model = make()
optimizer = tf.keras.optimizers.SGD(0.5)
dist = iter(strategy.experimental_distribute_dataset(data.repeat()))
@tf.function
def train_step(batch):
    def one(batch):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.keras.losses.sparse_categorical_crossentropy(batch[1], model(batch[0]), True)) / 32
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss
    return strategy.reduce("SUM", strategy.run(one, args=(batch,)), axis=None)
train_step(next(dist))
with lockstep.replay("last/kernel") as seen:
    train_step(next(dist))
    train_step(next(dist))
print(np.allclose(sum(seen.gradients), seen.reduced),
      np.allclose(seen.after - seen.before, -0.5 * seen.reduced, atol=1e-6),
      len(seen.gradients), seen.variable.endswith("last/kernel"), np.any(seen.gradients[0] != seen.gradients[1]),
      np.any(seen.reduced), tf.config.functions_run_eagerly())
"""


async def test_a_replay_of_ones_own_loop_fits_together(keras: SessionClient) -> None:
    told = await ran(keras, CUSTOM)
    assert told.stdout == "True True 2 True True True False\n"
    (picture,) = pictures(told)
    assert (picture["shape"], picture["operation"], len(picture["reduced"])) == ([5, 3], "sum", 15)
    assert "eagerly" not in told.text
    for i, total in enumerate(picture["reduced"]):
        assert sum(replica["values"][i] for replica in picture["replicas"]) == pytest.approx(total, rel=1e-4, abs=1e-6)
        step = picture["after"][i] - picture["before"][i]
        assert step == pytest.approx(-0.5 * total, rel=1e-3, abs=1e-6)


async def test_a_replay_of_fit_fits_together_and_the_training_goes_on(keras: SessionClient) -> None:
    told = await ran(
        keras,
        "import lockstep\n"
        "calls = []\n"
        "class Counted(tf.keras.layers.Dense):\n"
        "    def call(self, x): calls.append(1); return super().call(x)\n"
        "with strategy.scope():\n"
        "    model = tf.keras.Sequential([tf.keras.layers.Input((6,)), Counted(3, name='last')])\n"
        "    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)\n"
        "    model.compile(tf.keras.optimizers.SGD(0.25), loss)\n"
        "with lockstep.replay() as seen:\n"
        "    history = model.fit(data, epochs=2, verbose=0).history\n"
        "print(np.allclose(sum(seen.gradients), seen.reduced),"
        " np.allclose(seen.after - seen.before, -0.25 * seen.reduced, atol=1e-6), seen.variable.endswith('last/bias'),"
        " len(history['loss']), len(calls) < 20)",
    )
    assert told.stdout == "True True True 2 True\n"
    assert "eagerly" not in told.text
    assert len(pictures(told)) == 1
    assert metrics(told)[-1].step == 20


async def test_a_replay_that_sees_nothing_says_why(keras: SessionClient) -> None:
    told = await keras.run("import lockstep\nwith lockstep.replay():\n    pass")
    assert "saw no all-reduce" in told.error.value
    told = await keras.run("with lockstep.replay('dense_9/kernel'):\n    model.fit(data, epochs=2, verbose=0)")
    assert "did not update a variable named 'dense_9/kernel'" in told.error.value
    assert "last/bias" in told.error.value
    told = await keras.run("tf.config.functions_run_eagerly()")
    assert told.result == "False"


@pytest.mark.long
async def test_each_worker_of_a_cluster_tells_its_own_numbers_and_shards(client: RunnerClient) -> None:
    learner = SessionClient(client, topology="workers:2", keras=2)
    told = await ran(
        learner,
        "import tensorflow as tf, lockstep, numpy as np\n"
        "strategy = tf.distribute.MultiWorkerMirroredStrategy()\n"
        "numbers = tf.data.Dataset.range(8).batch(4)\n"
        "lockstep.shards(numbers, strategy)\n"
        "with strategy.scope():\n"
        "    model = tf.keras.Sequential([tf.keras.layers.Input((2,)), tf.keras.layers.Dense(1)])\n"
        "    model.compile('sgd', 'mse')\n"
        "model.fit(np.ones((16, 2)), np.ones(16), batch_size=8, epochs=2, verbose=0)\n"
        "lockstep.placement(model)\n"
        "try:\n    lockstep.replay().__enter__()\nexcept ValueError as e:\n    print(e)",
    )
    await learner.leave()
    lanes = {"worker 0", "worker 1"}
    assert {e.lane for e in metrics(told, "epoch")} == lanes
    steps = {(e.lane, e.step): e.values["loss"] for e in metrics(told, "step")}
    for e in metrics(told, "epoch"):  # two steps each; Keras 2 itself gives those of a step once for each worker
        assert steps[e.lane, 2 * e.step] == pytest.approx(e.values["loss"], rel=1e-5)
    assert {p.lane for p in progress(told)} == lanes
    shown = {d.lane: d.data[PICTURE]["replicas"] for d in told.displays if d.data.get(PICTURE, {}).get("title")}
    assert {lane: [r["lane"] for r in replicas] for lane, replicas in shown.items()} == {
        lane: [f"{lane}, replica 0"] for lane in lanes
    }
    assert sorted(e for replicas in shown.values() for r in replicas for e in r["examples"]) == ["0", "1", "2", "3"]
    assert told.stdout.count("each process has its own") == 2


async def test_a_replay_works_on_a_simulated_tpu(client: RunnerClient) -> None:
    learner = SessionClient(client, topology="tpu:2")
    told = await ran(
        learner,
        "import tensorflow as tf, lockstep, numpy as np\n"
        "resolver = tf.distribute.cluster_resolver.TPUClusterResolver('')\n"
        "tf.config.experimental_connect_to_cluster(resolver)\n"
        "tf.tpu.experimental.initialize_tpu_system(resolver)\n"
        "strategy = tf.distribute.TPUStrategy(resolver)\n"
        "with strategy.scope():\n"
        "    model = tf.keras.Sequential([tf.keras.layers.Input((2,)), tf.keras.layers.Dense(3)])\n"
        "    model.compile(tf.keras.optimizers.SGD(0.5), 'mse')\n"
        "data = tf.data.Dataset.from_tensor_slices((np.random.rand(32, 2), np.ones((32, 3)))).batch(8, True)\n"
        "with lockstep.replay() as seen:\n"
        "    model.fit(data, verbose=0)\n"
        "print(np.allclose(sum(seen.gradients), seen.reduced),"
        " np.allclose(seen.after - seen.before, -0.5 * seen.reduced, atol=1e-6))\n"
        "lockstep.placement(model)",
    )
    await learner.leave()
    assert told.stdout.endswith("True True\n")
    replay, placement = pictures(told)
    assert [replica["device"] for replica in replay["replicas"]] == placement["variables"][0]["devices"]
    assert placement["variables"][0]["devices"] == ["TPU:0 (simulated by CPU:0)", "TPU:1 (simulated by CPU:1)"]
