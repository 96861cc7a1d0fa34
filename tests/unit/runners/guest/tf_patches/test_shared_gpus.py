"""A GPU with a memory limit may be asked to grow; TensorFlow alone rejects that."""

from __future__ import annotations

import pytest

from tests.factories.tensorflow_forks import Forges

pytestmark = pytest.mark.slow

PROGRAM = """
import tensorflow as tf
from runners.guest.tf_patches import shared_gpus

memory = tf.config.experimental
shared, own = tf.config.list_physical_devices("GPU")
tf.config.set_logical_device_configuration(shared, [tf.config.LogicalDeviceConfiguration(memory_limit=100)])
try:
    memory.set_memory_growth(shared, True)
except ValueError as e:
    print(e)

shared_gpus.allow_growth([shared.name])
memory.set_memory_growth(shared, True)
memory.set_memory_growth(own, True)
print(memory.get_memory_growth(shared), memory.get_memory_growth(own))
try:
    memory.set_memory_growth(shared, False)
except ValueError as e:
    print(e)
"""


def test_a_gpu_with_a_limit_may_be_asked_to_grow(forges: Forges) -> None:
    ran = forges(3).run(PROGRAM, "gpu:2")
    assert ran.status == 0, ran.output
    refused, growing, fixed = ran.output.splitlines()[-3:]
    assert refused == "Cannot set memory growth on device when virtual devices configured"
    assert growing == "True True"
    assert fixed.startswith("This GPU is shared: its memory grows")
