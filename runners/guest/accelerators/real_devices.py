"""Real devices inside the sandbox: TensorFlow sees those that the supervisor gave, and takes their memory as it needs.

What was given comes with the sandbox's environment: CUDA is told by ``CUDA_VISIBLE_DEVICES`` and opens no other GPU,
for the sandbox has the device nodes of no other. Both are there before anything in it has asked for a device: that is
what CUDA looks at, once, when it is initialised. libtpu looks as soon as TensorFlow is imported, so a session with a
TPU imports TensorFlow itself (``runners.zygote.fork_server --cold``), and TensorFlow finds the TPU by its own means.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable

from runners.sandbox.layout import GRANTED_GPUS_VARIABLE


class GrantedDevicesMissing(RuntimeError):
    """The sandbox was given devices that TensorFlow does not find."""


def granted_gpus() -> list[tuple[int, int | None]] | None:
    """For each real GPU of this sandbox: as how many it is shown, and the memory of each in MB.

    Empty if what is real in it is a TPU, None if nothing is.
    """
    said = os.environ.get(GRANTED_GPUS_VARIABLE)
    return None if said is None else [(int(logical), memory_mb) for logical, memory_mb in json.loads(said)]


def configure_gpus(shares: Iterable[tuple[int, int | None]]) -> list[str]:
    """Make TensorFlow in this process see its GPUs so. Call once, before any op runs.

    Returns:
        The names of the physical GPUs whose logical devices have memory limits.

    Raises:
        GrantedDevicesMissing: TensorFlow finds fewer, or others.
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
            tf.config.set_memory_growth(gpu, True)
        else:
            each = tf.config.LogicalDeviceConfiguration(memory_limit=memory_mb)
            tf.config.set_logical_device_configuration(gpu, [each] * logical)
            split.append(gpu.name)
    return split
