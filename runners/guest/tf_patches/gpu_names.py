"""What ``/gpu:1`` means where GPUs are simulated: ``/device:CPU:1``, the logical device that stands for it.

TensorFlow reads every device name in one place, whoever wrote it: a learner in ``tf.device``, a strategy in its own
code, ``tf.data``. There the word is replaced, and what was read is remembered: no op is any slower for it. What comes
back from TensorFlow, a tensor's ``.device`` for one, is the name of the device that it really is on.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import device, device_spec, ops

from runners.guest.accelerators.gpu_rules import Components, cpu_stand_in, index_of
from runners.guest.reporting import notices


def translate(gpus: Callable[[], int], settled: Callable[[], bool]) -> None:
    """Have TensorFlow read names of GPUs as those of their stand-ins.

    Args:
        gpus: how many GPUs there are; a learner may still change it before the first op.
        settled: whether that number is final.
    """
    read = device_spec.DeviceSpecV2._string_to_components
    known: dict[str | None, Components] = {}

    def string_to_components(spec: str | None = None) -> Components:
        found = known.get(spec)
        if found is None:
            found = cpu_stand_in(read(spec), gpus())
            if settled():
                known[spec] = found
        return found

    device_spec.DeviceSpecV2._string_to_components = staticmethod(string_to_components)
    _translate_specs()
    _translate_copies()
    _say_so_once(gpus)


def _translate_specs() -> None:
    """In a graph a ``tf.DeviceSpec`` is used as it is: make it a name that is read."""
    merge = device.merge_device

    def merge_device(spec: Any) -> Any:
        return merge(spec.to_string() if device.is_device_spec(spec) else spec)

    device.merge_device = merge_device


def _translate_copies() -> None:
    """``tensor.gpu()`` names its device past everybody."""
    tensor_class = ops._EagerTensorBase
    copy = tensor_class._copy_nograd

    def copy_nograd(self: Any, ctx: Any = None, device_name: str | None = None) -> Any:
        return copy(self, ctx, device.canonical_name(device_name) if device_name else device_name)

    tensor_class._copy_nograd = copy_nograd


def _say_so_once(gpus: Callable[[], int]) -> None:
    """The first time that a learner's ``tf.device`` names a GPU, tell by what name its tensors go."""
    original = tf.device

    def named(device_name: Any) -> AbstractContextManager[None]:
        index = index_of(getattr(device_name, "name", device_name))
        if index is not None and index < gpus():
            tf.device = original
            notices.notify_once("gpu-names", gpu=f"GPU:{index}", device=f"CPU:{index}")
        scope: AbstractContextManager[None] = original(device_name)
        return scope

    tf.device = named
