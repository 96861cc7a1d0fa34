"""Lockstep's fixes for Keras 3, end to end: the command, a real runner, and an unmodified program."""

from __future__ import annotations

from pathlib import Path

import pytest

from runners.wire.client import RunnerClient
from runners.wire.protocol import Outcome
from tests.factories.cli_process import lockstep
from tests.factories.real_supervisor import RealSupervisor, SessionClient

TUTORIAL = Path(__file__).parents[2] / "functional" / "programs" / "custom_training.py"


async def test_tensorflows_custom_training_tutorial_trains_as_on_one_device(
    node: RealSupervisor, tmp_path: Path
) -> None:
    outputs = []
    for topology in ("cpu", "gpu:2"):
        command = ("run", str(TUTORIAL), f"--topology={topology}")
        ended = await lockstep(*command, within_s=120, runner_socket=node.socket, data_dir=tmp_path)
        assert ended.status == 0, ended.out[-1000:] + ended.err[-3000:]
        outputs.append(ended.out)

    assert outputs[0] == outputs[1]
    assert outputs[1].endswith("steps: 14\n")


STEPS = """
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    optimizer = tf.keras.optimizers.{optimizer}
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="ones")])

def step(x):
    with tf.GradientTape() as tape:
        loss = tf.nn.compute_average_loss(tf.square(model(x)[:, 0]))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss

run = tf.function(lambda x: strategy.run(step, args=(x,)))
for _ in range(2):
    run(tf.ones([2, 3]))
print("weight", round(float(strategy.experimental_local_results(model.variables[0].value)[0][0, 0]), 4))
"""


@pytest.mark.parametrize(
    "optimizer", ["SGD(0.1, momentum=0.9)", "AdamW(0.1)", "LossScaleOptimizer(tf.keras.optimizers.Adam(0.1))"]
)
async def test_optimizers_with_state_start_inside_the_step_of_several_workers(
    client: RunnerClient, optimizer: str
) -> None:
    printed = []
    for topology in ("workers:2xgpu:2", "cpu"):
        learner = SessionClient(client, topology=topology)
        told = await learner.run(STEPS.format(optimizer=optimizer))
        await learner.leave()
        assert told.outcome == Outcome.ok, told.events[-3:]
        printed.append({line.partition("weight ")[2] for line in told.stdout.splitlines() if "weight " in line})

    assert printed[0] == printed[1]
    assert len(printed[0]) == 1
