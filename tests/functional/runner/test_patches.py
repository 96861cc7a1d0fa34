"""What a real runner reports about its patches to TensorFlow and other libraries."""

from __future__ import annotations

from runners.wire.client import RunnerClient
from runners.wire.protocol import MetricEvent, NoticeEvent, Outcome
from tests.factories.real_supervisor import SessionClient


async def test_every_patch_fits_the_installed_libraries_and_the_runner_lists_them(client: RunnerClient) -> None:
    patches = (await client.patches()).patches

    assert [patch.problem for patch in patches if patch.state == "moved"] == []
    found = {patch.target for patch in patches if patch.state == "found" and patch.changes}
    assert "tensorflow.python.eager.context:Context.config" in found
    assert "keras.src.backend.tensorflow.core:Variable._initialize_with_initializer" in found
    assert len(found) >= 60


async def test_a_keras_that_is_imported_during_a_run_is_watched_in_the_same_run(client: RunnerClient) -> None:
    code = """
import sys
assert "tf_keras" not in sys.modules
import numpy as np
import tf_keras
model = tf_keras.Sequential([tf_keras.layers.Dense(1)])
model.compile("sgd", "mse")
_ = model.fit(np.ones((8, 2), "float32"), np.ones((8, 1), "float32"), epochs=2, verbose=0)
"""
    session = SessionClient(client, topology="cpu")
    run = await session.run(code)
    await session.leave()

    assert run.outcome == Outcome.ok, run.text
    assert [event.step for event in run.events if isinstance(event, MetricEvent) and event.per == "epoch"] == [1, 2]


async def test_a_metric_of_keras_3_is_reset_by_its_former_name_too(client: RunnerClient) -> None:
    code = """
import tensorflow as tf
loss = tf.keras.metrics.Mean()
for _ in range(2):
    loss.update_state(3.0)
    print(float(loss.result()))
    loss.reset_states()
    print(float(loss.result()))
"""
    session = SessionClient(client, topology="cpu")
    run = await session.run(code)
    await session.leave()

    assert run.outcome == Outcome.ok, run.text
    assert run.text.split() == ["3.0", "0.0"] * 2
    assert [event.code for event in run.events if isinstance(event, NoticeEvent)] == ["reset-states"]
