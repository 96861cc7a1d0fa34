"""The usual mistakes, made in sessions: TensorFlow and Keras still report each in the words that its hint looks for."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from runners.wire.client import RunnerClient
from runners.wire.error_hints import ERROR_HINTS
from runners.wire.protocol import KerasVersion
from tests.factories.real_supervisor import SessionClient

IMPORTS = """
import json
import os
import numpy as np
import tensorflow as tf
"""
MIRRORED = IMPORTS + "s = tf.distribute.MirroredStrategy()\n"
DATA = """
x = np.random.rand(64, 4).astype("float32")
y = np.random.rand(64, 1).astype("float32")
"""


@dataclass(frozen=True)
class Mistake:
    """A program, and the code of the hint that it gets."""

    hint: str
    program: str
    topology: str = "gpu:2"
    keras: KerasVersion = 3


MISTAKES = [
    Mistake(
        "strategy-comes-first",
        IMPORTS
        + """
tf.constant(1.0)
os.environ["TF_CONFIG"] = json.dumps(
    {"cluster": {"worker": ["localhost:12345", "localhost:23456"]}, "task": {"type": "worker", "index": 0}}
)
s = tf.distribute.MultiWorkerMirroredStrategy()
""",
    ),
    Mistake(
        "outside-the-scope",
        MIRRORED
        + DATA
        + """
model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
with s.scope():
    model.compile("sgd", "mse")
model.fit(x, y, verbose=0)
""",
    ),
    Mistake(
        "outside-the-scope",
        MIRRORED
        + DATA
        + """
model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
with s.scope():
    model.compile("sgd", "mse")
model.fit(x, y, verbose=0)
""",
        keras=2,
    ),
    Mistake(
        "outside-the-scope",
        MIRRORED
        + DATA
        + """
with s.scope():
    model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
opt = tf.keras.optimizers.Adam(0.1)
ds = s.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices((x, y)).batch(8))


@tf.function
def step(b):
    def f(x, y):
        with tf.GradientTape() as t:
            l = tf.reduce_mean((model(x) - y) ** 2)
        opt.apply_gradients(zip(t.gradient(l, model.trainable_variables), model.trainable_variables))

    s.run(f, args=b)


for b in ds:
    step(b)
""",
    ),
    Mistake(
        "outside-the-scope",
        MIRRORED
        + DATA
        + """
model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
with s.scope():
    opt = tf.keras.optimizers.Adam(0.1)
ds = s.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices((x, y)).batch(8))


@tf.function
def step(b):
    def f(x, y):
        with tf.GradientTape() as t:
            l = tf.reduce_mean((model(x) - y) ** 2)
        opt.apply_gradients(zip(t.gradient(l, model.trainable_variables), model.trainable_variables))

    s.run(f, args=b)


for b in ds:
    step(b)
""",
    ),
    Mistake(
        "outside-the-scope",
        MIRRORED
        + DATA
        + """
with s.scope():
    m = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
m.compile("adam", "mse")
m.fit(x, y, verbose=0)
""",
    ),
    Mistake(
        "two-strategies",
        MIRRORED
        + """
t = tf.distribute.OneDeviceStrategy("/cpu:0")
with s.scope():
    with t.scope():
        pass
""",
    ),
    Mistake(
        "in-a-replica",
        MIRRORED
        + """
def f():
    with s.scope():
        return tf.constant(1.0)


s.run(f)
""",
    ),
    Mistake(
        "outside-the-replicas",
        MIRRORED
        + """
with s.scope():
    tf.distribute.get_replica_context().all_reduce("SUM", tf.constant(1.0))
""",
    ),
    Mistake(
        "update-in-a-condition",
        MIRRORED
        + DATA
        + """
with s.scope():
    m = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
    m.compile(tf.keras.optimizers.SGD(0.1, gradient_accumulation_steps=2), "mse")
m.fit(x, y, verbose=0)
""",
    ),
    Mistake(
        "reduction-in-a-condition",
        MIRRORED
        + """
@tf.function
def step():
    def f():
        ctx = tf.distribute.get_replica_context()
        i = 0
        if tf.constant(1.0) > 0:
            i = ctx.all_reduce("SUM", tf.constant(1.0))
        return i

    return s.run(f)


step()
""",
    ),
    Mistake(
        "value-per-replica",
        MIRRORED
        + """
r = s.run(lambda: tf.constant(1.0))
print(r + 1)
""",
    ),
    Mistake(
        "value-per-replica",
        MIRRORED
        + """
r = s.run(lambda: tf.constant(1.0))
print(r.numpy())
""",
    ),
    Mistake(
        "value-per-replica",
        MIRRORED
        + """
r = s.run(lambda: tf.constant(1.0))
print(float(r))
""",
    ),
    Mistake(
        "value-per-replica",
        MIRRORED
        + """
r = s.run(lambda: tf.constant(1.0))
print(tf.reduce_mean(r))
""",
    ),
    Mistake(
        "value-per-replica",
        MIRRORED
        + """
r = s.run(lambda: tf.constant(1.0))
print(f"{r:.3f}")
""",
    ),
    Mistake(
        "arguments-of-run",
        MIRRORED
        + """
ds = s.experimental_distribute_dataset(tf.data.Dataset.range(8).batch(4))
for b in ds:
    s.run(lambda x: x, args=b)
""",
    ),
    Mistake(
        "reduce-needs-an-axis",
        MIRRORED
        + """
r = s.run(lambda: tf.constant(1.0))
print(s.reduce(tf.distribute.ReduceOp.SUM, r))
""",
    ),
    Mistake(
        "sum-or-mean",
        MIRRORED
        + """
r = s.run(lambda: tf.constant(1.0))
print(s.reduce("avg", r, axis=None))
""",
    ),
    Mistake(
        "no-aggregation",
        MIRRORED
        + """
with s.scope():
    v = tf.Variable(
        0.0, synchronization=tf.VariableSynchronization.ON_READ, aggregation=tf.VariableAggregation.NONE
    )
print(v.numpy())
print(v + 1)
s.run(lambda: v.assign_add(1.0))
print(v.read_value())
""",
    ),
    Mistake(
        "loss-reduction",
        MIRRORED
        + DATA
        + """
with s.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
    lo = tf.keras.losses.MeanSquaredError()
    opt = tf.keras.optimizers.Adam(0.1)
ds = s.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices((x, y)).batch(8))


@tf.function
def step(b):
    def f(x, y):
        with tf.GradientTape() as t:
            l = lo(y, model(x))
        opt.apply_gradients(zip(t.gradient(l, model.trainable_variables), model.trainable_variables))

    s.run(f, args=b)


for b in ds:
    step(b)
""",
        keras=2,
    ),
    Mistake(
        "shapes-differ",
        IMPORTS
        + """
s = tf.distribute.MultiWorkerMirroredStrategy()
i = s.cluster_resolver.task_id


@tf.function
def step():
    return s.run(lambda: tf.distribute.get_replica_context().all_reduce("SUM", tf.ones(2 + i)))


print(step())
""",
        topology="workers:2",
    ),
    Mistake(
        "dataset-already-distributed",
        MIRRORED
        + """
ds = s.experimental_distribute_dataset(tf.data.Dataset.range(64).batch(8))
ds = ds.take(2)
""",
    ),
    Mistake(
        "dataset-already-distributed",
        MIRRORED
        + """
ds = s.experimental_distribute_dataset(tf.data.Dataset.range(64).batch(8))
print(len(ds))
next(ds)
""",
    ),
    Mistake(
        "not-a-dataset",
        MIRRORED
        + """
s.experimental_distribute_dataset(np.ones((8, 2)))
""",
    ),
    Mistake(
        "unequal-shards",
        MIRRORED
        + """
with s.scope():
    model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
model.fit(np.ones((1, 4)), np.ones((1, 1)), verbose=0)
""",
    ),
    Mistake(
        "unequal-shards",
        MIRRORED
        + """
with s.scope():
    model = tf.keras.Sequential([tf.keras.Input((8, 8, 3)), tf.keras.layers.Conv2D(4, 3), tf.keras.layers.Flatten()])
    model.compile("sgd", "mse")
model.fit(np.ones((65, 8, 8, 3)), np.ones((65, 144)), batch_size=64, verbose=0)
""",
    ),
    Mistake(
        "batch-before-distributing",
        MIRRORED
        + """
ds = tf.data.Dataset.range(64)
ds = s.experimental_distribute_dataset(ds)
for b in ds:
    print(b)
    break
""",
    ),
    Mistake(
        "function-of-a-dataset",
        MIRRORED
        + """
s.distribute_datasets_from_function(tf.data.Dataset.range(8).batch(2))
""",
    ),
    Mistake(
        "nothing-to-shard-by-file",
        IMPORTS
        + """
s = tf.distribute.MultiWorkerMirroredStrategy()
ds = tf.data.Dataset.range(8).batch(2)
o = tf.data.Options()
o.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.FILE
for b in s.experimental_distribute_dataset(ds.with_options(o)):
    print(b)
    break
""",
        topology="workers:2",
    ),
    Mistake(
        "devices-come-first",
        IMPORTS
        + """
tf.constant(1.0)
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("GPU")[0], [tf.config.LogicalDeviceConfiguration(1024)] * 2
)
""",
    ),
    Mistake(
        "devices-come-first",
        IMPORTS
        + """
tf.constant(1.0)
tf.config.threading.set_intra_op_parallelism_threads(1)
""",
    ),
    Mistake(
        "no-tpu",
        IMPORTS
        + """
r = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="")
tf.config.experimental_connect_to_cluster(r)
tf.tpu.experimental.initialize_tpu_system(r)
""",
    ),
    Mistake(
        "tpu-needs-a-function",
        IMPORTS
        + """
r = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="")
tf.config.experimental_connect_to_cluster(r)
tf.tpu.experimental.initialize_tpu_system(r)
s = tf.distribute.TPUStrategy(r)
print(s.run(lambda: tf.constant(1.0)))
""",
        topology="tpu:8",
    ),
    Mistake(
        "tf-config",
        IMPORTS
        + """
os.environ["TF_CONFIG"] = "{bad json"
s = tf.distribute.MultiWorkerMirroredStrategy()
""",
    ),
    Mistake(
        "tf-config",
        IMPORTS
        + """
os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": ["localhost:12345"]}})
s = tf.distribute.MultiWorkerMirroredStrategy()
""",
    ),
    Mistake(
        "tf-config",
        IMPORTS
        + """
os.environ["TF_CONFIG"] = json.dumps(
    {"cluster": {"worker": ["localhost:12345"]}, "task": {"type": "worker", "index": 3}}
)
s = tf.distribute.MultiWorkerMirroredStrategy()
""",
    ),
    Mistake(
        "no-cluster",
        IMPORTS
        + """
r = tf.distribute.cluster_resolver.TFConfigClusterResolver()
s = tf.distribute.ParameterServerStrategy(r)
""",
    ),
    Mistake(
        "schedule-a-function",
        IMPORTS
        + """
r = tf.distribute.cluster_resolver.TFConfigClusterResolver()
s = tf.distribute.ParameterServerStrategy(r)
c = tf.distribute.coordinator.ClusterCoordinator(s)
v = c.schedule(lambda: 1)
c.join()
print(v + 1)
""",
        topology="ps:1+1",
    ),
    Mistake(
        "not-fetched",
        IMPORTS
        + """
r = tf.distribute.cluster_resolver.TFConfigClusterResolver()
s = tf.distribute.ParameterServerStrategy(r)
c = tf.distribute.coordinator.ClusterCoordinator(s)
v = c.schedule(tf.function(lambda: tf.constant(1.0)))
c.join()
print(v.numpy())
""",
        topology="ps:1+1",
    ),
    Mistake(
        "communication-options",
        IMPORTS
        + """
tf.distribute.MultiWorkerMirroredStrategy(
    communication=tf.distribute.experimental.CollectiveCommunication.RING
)
""",
    ),
    Mistake(
        "no-network",
        IMPORTS
        + """
import urllib.request

urllib.request.urlopen("https://example.org")
""",
    ),
    Mistake(
        "no-network",
        IMPORTS
        + """
import requests

requests.get("https://example.org")
""",
    ),
    Mistake(
        "package-missing",
        """
import torch
""",
    ),
    Mistake(
        "tensor-as-a-condition",
        IMPORTS
        + """
@tf.function(autograph=False)
def f(x):
    if x > 0:
        return x
    return -x


f(tf.constant(1.0))
""",
    ),
    Mistake(
        "numpy-in-a-function",
        IMPORTS
        + """
@tf.function
def f(x):
    return x.numpy()


f(tf.constant(1.0))
""",
    ),
    Mistake(
        "tensor-left-its-function",
        IMPORTS
        + """
l = []


@tf.function
def f(x):
    l.append(x * 2)
    return x


f(tf.constant(1.0))
print(l[0] + 1)
""",
    ),
    Mistake(
        "keras-2-for-fit",
        IMPORTS
        + DATA
        + """
s = tf.distribute.MultiWorkerMirroredStrategy()
with s.scope():
    m = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
    m.compile("sgd", "mse")
m.fit(x, y, verbose=0)
""",
        topology="workers:2",
    ),
    Mistake(
        "no-gradients",
        MIRRORED
        + """
with s.scope():
    a = tf.Variable(1.0)
    b = tf.Variable(2.0)
    opt = tf.keras.optimizers.SGD(0.1)


@tf.function
def step():
    def f():
        with tf.GradientTape() as t:
            l = a * a
        g = t.gradient(l, [b])
        opt.apply_gradients(zip(g, [b]))

    s.run(f)


step()
""",
    ),
    Mistake(
        "one-hot-labels",
        IMPORTS
        + """
l = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
print(l(tf.one_hot([1, 2], 3), tf.random.normal((2, 3))))
""",
    ),
    Mistake(
        "mixed-types",
        IMPORTS
        + """
print(tf.constant(1.0, tf.float16) + tf.constant(1.0))
""",
    ),
    Mistake(
        "legacy-optimizer",
        MIRRORED
        + """
opt = tf.keras.optimizers.legacy.SGD(0.1)
v = tf.Variable(1.0)
opt.minimize(lambda: v * v, [v])
""",
    ),
    Mistake(
        "no-longer-experimental",
        MIRRORED
        + """
opt = tf.keras.optimizers.experimental.SGD(0.1)
""",
    ),
    Mistake(
        "no-longer-experimental",
        IMPORTS
        + """
tf.keras.mixed_precision.experimental.set_policy("mixed_float16")
""",
    ),
    Mistake(
        "no-longer-experimental",
        IMPORTS
        + """
tf.keras.callbacks.experimental.BackupAndRestore
""",
    ),
    Mistake(
        "renamed-in-keras-3",
        IMPORTS
        + """
tf.keras.Sequential().reset_states()
""",
    ),
    Mistake(
        "renamed-in-keras-3",
        IMPORTS
        + """
tf.keras.optimizers.Adam().lr
""",
    ),
    Mistake(
        "renamed-in-keras-3",
        IMPORTS
        + """
tf.keras.optimizers.SGD(lr=0.1)
""",
    ),
    Mistake(
        "only-in-keras-2",
        IMPORTS
        + """
tf.keras.utils.SidecarEvaluator
""",
    ),
    Mistake(
        "only-in-keras-2",
        IMPORTS
        + """
tf.keras.utils.experimental.DatasetCreator
""",
    ),
    Mistake(
        "only-in-keras-2",
        IMPORTS
        + """
tf.keras.experimental.SidecarEvaluator
""",
    ),
    Mistake(
        "only-in-keras-2",
        IMPORTS
        + """
tf.keras.layers.experimental.SyncBatchNormalization
""",
    ),
    Mistake(
        "only-in-keras-2",
        IMPORTS
        + """
tf.keras.backend.experimental.enable_tf_random_generator()
""",
    ),
    Mistake(
        "only-in-keras-2",
        IMPORTS
        + """
tf.keras.dtensor.experimental.LayoutMap
""",
    ),
    Mistake(
        "only-in-keras-2",
        IMPORTS
        + """
import tensorflow_hub
tensorflow_hub.KerasLayer
""",
    ),
    Mistake(
        "layers-of-tensorflow-1",
        IMPORTS
        + """
tf.compat.v1.layers.dense(tf.ones([1, 1]), 1)
""",
    ),
    Mistake(
        "loss-scaling",
        IMPORTS
        + """
o = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD())
o.get_scaled_loss(tf.constant(1.0))
""",
    ),
    Mistake(
        "file-name-to-save",
        MIRRORED
        + """
m = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
m.save("folder")
""",
    ),
    Mistake(
        "file-name-to-save",
        MIRRORED
        + """
m = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
tf.saved_model.save(m, "f")
tf.keras.models.load_model("f")
""",
    ),
    Mistake(
        "file-name-to-save",
        MIRRORED
        + """
m = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
m.save_weights("x")
""",
    ),
    Mistake(
        "file-name-to-save",
        MIRRORED
        + DATA
        + """
m = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
m.compile("sgd", "mse")
tf.keras.callbacks.ModelCheckpoint("ck", save_weights_only=True)
""",
    ),
    Mistake(
        "run-has-a-new-name",
        MIRRORED
        + """
s.experimental_run_v2(lambda: 1)
""",
    ),
    Mistake(
        "datasets-of-arrays",
        MIRRORED
        + """
s.experimental_make_numpy_dataset(np.ones(3))
""",
    ),
    Mistake(
        "tensorflow-1",
        IMPORTS
        + """
tf.Session()
""",
    ),
    Mistake(
        "estimators-are-gone",
        IMPORTS
        + """
tf.estimator.RunConfig()
""",
    ),
    Mistake(
        "estimators-are-gone",
        IMPORTS
        + """
tf.compat.v1.estimator.RunConfig()
""",
    ),
    Mistake(
        "estimators-are-gone",
        IMPORTS
        + """
from tensorflow import estimator
""",
    ),
    Mistake(
        "estimators-are-gone",
        IMPORTS
        + """
tf.keras.estimator.model_to_estimator(tf.keras.Sequential([tf.keras.layers.Dense(1)]))
""",
        keras=2,
    ),
    Mistake(
        "multi-gpu-model",
        IMPORTS
        + """
tf.keras.utils.multi_gpu_model(None, 2)
""",
    ),
    Mistake(
        "variable-in-a-function",
        MIRRORED
        + """
@tf.function
def step():
    def f():
        v = tf.Variable(1.0)
        return v + 1

    return s.run(f)


step()
step()
""",
    ),
    Mistake(
        "keras-2-for-fit-with-servers",
        IMPORTS
        + DATA
        + """
r = tf.distribute.cluster_resolver.TFConfigClusterResolver()
s = tf.distribute.ParameterServerStrategy(r)
with s.scope():
    model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
model.fit(tf.data.Dataset.from_tensor_slices((x, y)).batch(8).repeat(), steps_per_epoch=2, verbose=0)
""",
        topology="ps:1+1",
    ),
]
PROVOKED_ELSEWHERE = {"steps-per-execution"}
"""In ``tests/functional/runner/test_gpus.py``."""


@pytest.mark.parametrize("mistake", MISTAKES, ids=[f"{n}-{mistake.hint}" for n, mistake in enumerate(MISTAKES)])
async def test_a_usual_mistake_ends_with_its_hint(client: RunnerClient, mistake: Mistake) -> None:
    learner = SessionClient(client, topology=mistake.topology, keras=mistake.keras)
    try:
        ended = await learner.run(mistake.program)
    finally:
        await learner.leave()

    assert ended.outcome == "error"
    hints = {hint.code for hint in ERROR_HINTS} & {event.code for event in ended.events if event.kind == "notice"}
    assert hints == {mistake.hint}, [event.value for event in ended.events if event.kind == "error"]


def test_every_mistake_is_made() -> None:
    assert {hint.code for hint in ERROR_HINTS} == {mistake.hint for mistake in MISTAKES} | PROVOKED_ELSEWHERE
