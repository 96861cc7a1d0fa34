"""Simulated GPUs in a learner's session."""

from __future__ import annotations

import re

from runners.wire.client import RunnerClient
from runners.wire.protocol import NoticeEvent, Outcome
from tests.factories.real_supervisor import SessionClient

ASK = """
import subprocess
def said(*command):
    return subprocess.run(command, capture_output=True, text=True)
table = said("nvidia-smi")
assert table.returncode == 0, table
print(table.stdout, end="")
print(said("nvidia-smi", "-L").stdout, end="")
"""


async def test_nvidia_smi_shows_the_devices_of_the_session_and_that_they_are_simulated(client: RunnerClient) -> None:
    learner = SessionClient(client, topology="gpu:2")
    told = await learner.run(ASK)
    await learner.leave()
    lines = told.stdout.splitlines()

    assert told.outcome == Outcome.ok, told.text
    assert "simulated by Lockstep: there is no NVIDIA driver here" in told.stdout
    assert [line for line in lines if line.startswith("GPU ")] == [
        f"GPU {i}: Lockstep simulated GPU (UUID: GPU-simulated-{i})" for i in range(2)
    ]
    assert "not known of" in told.stdout or re.search(r"[1-9][0-9]* MiB of [1-9][0-9]* MiB in use", told.stdout)


async def test_nvidia_smi_works_in_a_cell_and_is_missing_without_gpus(
    client: RunnerClient,
) -> None:
    learner = SessionClient(client, topology="gpu:1")
    told = await learner.run("!nvidia-smi -L")
    await learner.leave()
    assert told.stdout.replace("\r", "") == "GPU 0: Lockstep simulated GPU (UUID: GPU-simulated-0)\n"

    other = SessionClient(client, topology="cpu")
    told = await other.run('import shutil\nprint(shutil.which("nvidia-smi"))')
    await other.leave()
    assert "lockstep" not in told.stdout


async def test_a_learner_who_names_a_gpu_is_told_once_which_device_its_tensors_report(learner: SessionClient) -> None:
    code = 'import tensorflow as tf\nwith tf.device("/gpu:1"):\n    print(tf.constant(1.0).device)'
    first, second = await learner.run(code), await learner.run(code)

    assert first.stdout == second.stdout == "/job:localhost/replica:0/task:0/device:CPU:1\n"
    (notice,) = [event for event in first.events if isinstance(event, NoticeEvent)]
    assert notice.code == "gpu-names"
    assert notice.text.startswith("GPU:1 is simulated by TensorFlow's logical device CPU:1")
    assert [event for event in second.events if isinstance(event, NoticeEvent)] == []


STEPS_PER_EXECUTION = """
import numpy as np
import tensorflow as tf
strategy = tf.distribute.MirroredStrategy(cross_device_ops={ops})
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse", steps_per_execution=2)
model.fit(np.ones((16, 2), "float32"), np.ones((16, 1), "float32"), batch_size=4, verbose=0)
"""


async def test_several_steps_per_execution_fail_in_keras_3_with_advice_that_works(
    client: RunnerClient,
) -> None:
    learner = SessionClient(client, topology="gpu:2")
    told = await learner.run(STEPS_PER_EXECUTION.format(ops=None))
    assert told.outcome == "error"
    notices = [event for event in told.events if event.kind == "notice"]
    assert "steps-per-execution" in [notice.code for notice in notices]
    assert "cross_device_ops=tf.distribute.ReductionToOneDevice()" in notices[-1].text
    again = await learner.run(STEPS_PER_EXECUTION.format(ops="tf.distribute.ReductionToOneDevice()"))
    assert again.outcome == "ok"
    await learner.leave()


ACCUMULATION = """
import numpy as np
import tensorflow as tf
with tf.distribute.MirroredStrategy().scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.SGD(gradient_accumulation_steps=2), "mse")
model.fit(np.ones((8, 2), "float32"), np.ones((8, 1), "float32"), batch_size=4, verbose=0)
"""


async def test_accumulating_gradients_in_an_optimizer_says_why_it_fails_in_keras_3(
    client: RunnerClient,
) -> None:
    learner = SessionClient(client, topology="gpu:2")
    told = await learner.run(ACCUMULATION)
    alone = await learner.run(ACCUMULATION.replace("MirroredStrategy()", 'OneDeviceStrategy("/gpu:1")'))
    await learner.leave()

    assert told.outcome == "error"
    (notice,) = [event for event in told.events if isinstance(event, NoticeEvent)]
    assert notice.code == "update-in-a-condition"
    assert "accumulate the gradients in your own training loop" in notice.text
    assert alone.outcome == "ok"


async def test_a_cell_can_be_changed_and_run_again_with_a_strategy_and_a_model_of_its_own(
    learner: SessionClient,
) -> None:
    code = """
import tensorflow as tf
strategy = tf.distribute.{strategy}()
with strategy.scope():
    weight = tf.Variable(tf.zeros([{size}]))
@tf.function
def step():
    strategy.run(lambda: weight.assign_add(tf.distribute.get_replica_context().all_reduce("sum", tf.ones([{size}]))))
step()
print(weight.numpy())
"""
    for strategy, size in (("MirroredStrategy", 2), ("MirroredStrategy", 3), ("MultiWorkerMirroredStrategy", 1)):
        told = await learner.run(code.format(strategy=strategy, size=size))
        assert told.stdout == f"[{' '.join(['4.'] * size)}]\n", told.text
