"""The program that every strategy runs, and the rows of the table: which strategies, on which machines."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """A strategy on a machine; ``code`` assigns it to ``strategy``."""

    strategy: str
    machine: str
    code: str


def _mirrored(operations: str) -> str:
    return f"strategy = tf.distribute.MirroredStrategy(cross_device_ops=tf.distribute.{operations}())"


_TPU = """
resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="")
tf.config.experimental_connect_to_cluster(resolver)
tf.tpu.experimental.initialize_tpu_system(resolver)
strategy = tf.distribute.TPUStrategy(resolver)
"""
_SERVERS = """
strategy = tf.distribute.ParameterServerStrategy(tf.distribute.cluster_resolver.TFConfigClusterResolver())
"""
_SERVERS_IN_PROCESS = """
import portpicker
jobs = ["worker", "worker", "ps"]
addresses = [f"localhost:{portpicker.pick_unused_port()}" for _ in jobs]
spec = tf.train.ClusterSpec({"worker": addresses[:2], "ps": addresses[2:]})
servers = [tf.distribute.Server(spec, job, i % 2, protocol="grpc") for i, job in enumerate(jobs)]
resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(spec, rpc_layer="grpc")
strategy = tf.distribute.ParameterServerStrategy(resolver)
"""
_WORKERS = "strategy = tf.distribute.MultiWorkerMirroredStrategy()"

ROWS = (
    Row("`OneDeviceStrategy`", "gpu:4", 'strategy = tf.distribute.OneDeviceStrategy("/gpu:1")'),
    Row("`MirroredStrategy`", "gpu:4", "strategy = tf.distribute.MirroredStrategy()"),
    Row("… with `NcclAllReduce`", "gpu:4", _mirrored("NcclAllReduce")),
    Row("… with `HierarchicalCopyAllReduce`", "gpu:4", _mirrored("HierarchicalCopyAllReduce")),
    Row("… with `ReductionToOneDevice`", "gpu:4", _mirrored("ReductionToOneDevice")),
    Row("`CentralStorageStrategy`", "gpu:4", "strategy = tf.distribute.experimental.CentralStorageStrategy()"),
    Row("`MultiWorkerMirroredStrategy`", "gpu:4", _WORKERS),
    Row("`MultiWorkerMirroredStrategy`", "workers:2", _WORKERS),
    Row("`MultiWorkerMirroredStrategy`", "workers:2xgpu:2", _WORKERS),
    Row("`TPUStrategy`", "tpu:4", _TPU),
    Row("`ParameterServerStrategy`, `ClusterCoordinator`", "ps:2+1", _SERVERS),
    Row("… with servers in the program's own process", "cpu", _SERVERS_IN_PROCESS),
)
SETUP = """
import json
import numpy as np
import tensorflow as tf

RATE, STEPS, BATCH = 0.1, 2, 16
x = np.random.default_rng(1).normal(size=(BATCH, 3)).astype("float32")
y = x.sum(1, keepdims=True) + 1
by_hand, losses_by_hand = np.zeros((4, 1)), []
with_bias = np.hstack([x, np.ones((BATCH, 1))])
for _ in range(STEPS):
    error = with_bias @ by_hand - y
    losses_by_hand.append(float((error**2).mean()))
    by_hand -= RATE * 2 / BATCH * with_bias.T @ error

STRATEGY
by_servers = isinstance(strategy, tf.distribute.ParameterServerStrategy)

def batches():
    return tf.data.Dataset.from_tensors((x, y)).unbatch().batch(BATCH, drop_remainder=True).repeat()

def build():
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1, kernel_initializer="zeros")])
        optimizer = tf.keras.optimizers.SGD(RATE)
        optimizer.build(model.trainable_variables)
    return model, optimizer

def fit():
    model, optimizer = build()
    with strategy.scope():
        model.compile(optimizer, "mse")
    # With servers the steps of an epoch are in no order.
    epochs, steps = (STEPS, 1) if by_servers else (1, STEPS)
    report(model, model.fit(batches(), epochs=epochs, steps_per_epoch=steps, verbose=0).history["loss"])

def loop():
    model, optimizer = build()

    def replica(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((model(x, training=True) - y) ** 2) / BATCH
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    @tf.function
    def step(iterator):
        return strategy.reduce("SUM", strategy.run(replica, args=next(iterator)), axis=None)

    losses = []
    if by_servers:
        coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        iterator = iter(coordinator.create_per_worker_dataset(batches))
        for _ in range(STEPS):
            losses.append(coordinator.schedule(step, args=(iterator,)).fetch())
    else:
        iterator = iter(strategy.experimental_distribute_dataset(batches()))
        for _ in range(STEPS):
            losses.append(step(iterator))
    report(model, losses)

def report(model, losses):
    weights = np.concatenate([w.reshape(-1, 1) for w in model.get_weights()])
    found = {"weights": np.abs(weights - by_hand).max(), "loss": abs(np.mean(losses) - np.mean(losses_by_hand))}
    print("RESULT" + json.dumps({name: float(apart) for name, apart in found.items()}))
"""
"""``fit`` and ``loop`` train two steps and print how far their weights and their mean loss are from those of one
large batch, computed by hand."""

MACHINE_OF_LIMITS = "gpu:4"
LIMITS = {
    "`gradient_accumulation_steps` of an optimizer": """
strategy = tf.distribute.MirroredStrategy(["/gpu:0", "/gpu:1"])
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(4)])
    model.compile(tf.keras.optimizers.SGD(gradient_accumulation_steps=2), "mse")
model.fit(np.zeros((8, 3)), np.zeros((8, 4)), batch_size=4, verbose=0)
""",
    "`LossScaleOptimizer` where only the second replica's gradient overflows": """
strategy = tf.distribute.MirroredStrategy(["/gpu:0", "/gpu:1"])
with strategy.scope():
    weight = tf.Variable(1.0)
    optimizer = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.1))
    optimizer.build([weight])

@tf.function
def step(gradients):
    strategy.run(lambda gradient: optimizer.apply_gradients([(gradient, weight)]), args=(gradients,))

step(strategy.experimental_distribute_values_from_function(
    lambda context: tf.constant([0.0, np.inf][context.replica_id_in_sync_group])
))
assert np.isfinite(weight.numpy()), "the infinite gradient went into the weights"
""",
}
"""What Keras or TensorFlow do not do with two replicas, one program each."""
