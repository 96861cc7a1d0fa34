"""Real devices inside the sandbox: TensorFlow sees the granted ones, and takes their memory as it needs it.

The sandbox's environment names the granted devices: CUDA reads ``CUDA_VISIBLE_DEVICES``, and can open no other GPU
because the sandbox has no other device nodes. Both exist before anything in the sandbox asks for a device, because CUDA
looks only once, when it is initialized. libtpu looks as soon as TensorFlow is imported, so a session with a TPU imports
TensorFlow itself (``runners.zygote.fork_server --cold``), and TensorFlow finds the TPU on its own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable

from runners.sandbox.layout import GRANTED_GPUS_VARIABLE


class GrantedDevicesMissing(RuntimeError):
    """TensorFlow does not find the devices that were granted to the sandbox."""


def granted_gpus() -> list[tuple[int, int | None]] | None:
    """For each real GPU of this sandbox: the number of logical GPUs it becomes, and the memory of each in MB.

    Empty if its only real device is a TPU; None if it has no real device.
    """
    said = os.environ.get(GRANTED_GPUS_VARIABLE)
    return None if said is None else [(int(logical), memory_mb) for logical, memory_mb in json.loads(said)]


def configure_gpus(shares: Iterable[tuple[int, int | None]]) -> list[str]:
    """Configure the GPUs of this process in TensorFlow accordingly. Call once, before any op runs.

    Returns:
        The names of the physical GPUs whose logical devices have memory limits.

    Raises:
        GrantedDevicesMissing: TensorFlow finds fewer GPUs.
    """
    import tensorflow as tf

    shares = list(shares)
    gpus = tf.config.list_physical_devices("GPU")
    if len(gpus) != len(shares):
        raise GrantedDevicesMissing(
            f"{len(shares)} GPUs were assigned to this session, but TensorFlow finds {len(gpus)}"
        )
    split = []
    for gpu, (logical, memory_mb) in zip(gpus, shares, strict=True):
        if memory_mb is None:
            tf.config.experimental.set_memory_growth(gpu, True)
        else:
            each = tf.config.LogicalDeviceConfiguration(memory_limit=memory_mb)
            tf.config.set_logical_device_configuration(gpu, [each] * logical)
            split.append(gpu.name)
    return split
