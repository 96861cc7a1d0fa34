"""What sessions may do with a part of a real GPU, and TensorFlow alone rejects."""

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


NCCL = """
import tensorflow as tf
from runners.guest.tf_patches import nccl

nccl.replace("nccl-logical")
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], tf.distribute.NcclAllReduce())

@tf.function
def step():
    replica = lambda: tf.distribute.get_replica_context().all_reduce("SUM", tf.constant([1.0, 2.0]))
    return strategy.experimental_local_results(strategy.run(replica))

print([value.numpy().tolist() for value in step()])
"""


def test_nccl_is_replaced_between_logical_gpus_of_one_gpu(forges: Forges) -> None:
    ran = forges(3).run(NCCL, "cpu")
    assert ran.status == 0, ran.output
    assert ran.output.count("NCCL cannot reduce between logical GPUs of one real GPU.") == 1
    assert ran.output.splitlines()[-1] == "[[2.0, 4.0], [2.0, 4.0]]"
