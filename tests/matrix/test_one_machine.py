"""Every strategy of one machine, with ``fit`` and with a loop of one's own, in both Kerases, on simulated GPUs.

"Works" means that two steps on four replicas gave the weights that two steps on one large batch give, computed here by
hand. The table in ``docs/strategies.md`` is written from these results: ``LOCKSTEP_TEST_WRITE=1`` writes it anew.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.factories.forge import Forge

pytestmark = pytest.mark.slow

PAGE = Path(__file__).resolve().parents[2] / "docs" / "strategies.md"
STRATEGIES = {
    "`OneDeviceStrategy`": 'tf.distribute.OneDeviceStrategy("/gpu:1")',
    "`MirroredStrategy`": "tf.distribute.MirroredStrategy()",
    "… with `NcclAllReduce`": "tf.distribute.MirroredStrategy(cross_device_ops=tf.distribute.NcclAllReduce())",
    "… with `HierarchicalCopyAllReduce`": (
        "tf.distribute.MirroredStrategy(cross_device_ops=tf.distribute.HierarchicalCopyAllReduce())"
    ),
    "… with `ReductionToOneDevice`": (
        "tf.distribute.MirroredStrategy(cross_device_ops=tf.distribute.ReductionToOneDevice())"
    ),
    "`CentralStorageStrategy`": "tf.distribute.experimental.CentralStorageStrategy()",
    "`MultiWorkerMirroredStrategy`, one worker": "tf.distribute.MultiWorkerMirroredStrategy()",
}
WAYS = ("fit", "a loop of one's own")

PROGRAM = """
import json
import numpy as np
import tensorflow as tf

RATE, STEPS, BATCH = 0.1, 2, 16
x = np.random.default_rng(1).normal(size=(BATCH, 3)).astype("float32")
y = x.sum(1, keepdims=True) + 1
by_hand = np.zeros((4, 1))
with_bias = np.hstack([x, np.ones((BATCH, 1))])
for _ in range(STEPS):
    by_hand -= RATE * 2 / BATCH * with_bias.T @ (with_bias @ by_hand - y)

strategy = STRATEGY
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1, kernel_initializer="zeros")])
    optimizer = tf.keras.optimizers.SGD(RATE)
    optimizer.build(model.trainable_variables)
data = tf.data.Dataset.from_tensors((x, y)).unbatch().batch(BATCH).repeat(STEPS)

def fit():
    with strategy.scope():
        model.compile(optimizer, "mse")
    model.fit(data, epochs=1, steps_per_epoch=STEPS, verbose=0)

def loop():
    def replica(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((model(x, training=True) - y) ** 2) / BATCH
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    @tf.function
    def step(batch):
        return strategy.reduce("SUM", strategy.run(replica, args=batch), axis=None)

    for batch in strategy.experimental_distribute_dataset(data):
        step(batch)

try:
    WAY()
    weights = np.concatenate([w.reshape(-1, 1) for w in model.get_weights()])
    result = "works" if np.allclose(weights, by_hand, rtol=1e-4) else f"other weights: {weights.ravel().tolist()}"
except Exception as e:
    result = f"fails: {type(e).__name__}"
print("RESULT" + json.dumps(result))
"""


@pytest.fixture(scope="module")
def results() -> dict[str, list[str]]:
    """For each strategy: Keras 3 with fit, with a loop, and the same of Keras 2."""
    found: dict[str, list[str]] = {name: [] for name in STRATEGIES}
    for keras in (3, 2):
        forge = Forge(keras)
        for name, strategy in STRATEGIES.items():
            for way in ("fit", "loop"):
                ran = forge.run(PROGRAM.replace("STRATEGY", strategy).replace("WAY", way))
                said = [line for line in ran.output.splitlines() if line.startswith("RESULT")]
                assert said, ran.output[-3000:]
                found[name].append(json.loads(said[0].removeprefix("RESULT")))
        forge.close()
    return found


def table(results: dict[str, list[str]]) -> str:
    """The results in Markdown."""
    head = ["strategy", *(f"Keras {keras}, {way}" for keras in (3, 2) for way in WAYS)]
    rows = [head, ["---"] * len(head), *([name, *found] for name, found in results.items())]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


@pytest.mark.timeout(900)
def test_the_table_in_the_documentation_is_what_came_out(results: dict[str, list[str]]) -> None:
    text = PAGE.read_text()
    begin, end = "<!-- one machine: written by tests/matrix/test_one_machine.py -->\n", "<!-- end of one machine -->\n"
    before, _, rest = text.partition(begin)
    published, _, after = rest.partition(end)
    if os.environ.get("LOCKSTEP_TEST_WRITE"):
        PAGE.write_text(before + begin + table(results) + end + after)
        published = table(results)
    assert published == table(results)


def test_nothing_fails_and_nothing_computes_something_else(results: dict[str, list[str]]) -> None:
    assert set().union(*results.values()) == {"works"}
