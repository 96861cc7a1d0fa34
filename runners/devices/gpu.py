"""``gpu:N`` without GPUs: N logical CPU devices stand for N GPUs, and TensorFlow's questions about GPUs are
answered as if they were.

Only what a lesson asks first is here: the device lists, and MirroredStrategy's choice of devices. Everything stays
TensorFlow's own code on TensorFlow's own devices; what is replaced are the words ``GPU`` on the way in and out.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute import central_storage_strategy, mirrored_strategy
from tensorflow.python.eager import context as tf_context
from tensorflow.python.framework import config as tf_config

_GPU = re.compile(r"(?<![a-z])gpu:(?=\d|\*)", re.IGNORECASE)


def simulate(count: int) -> None:
    """Make TensorFlow in this process see ``count`` GPUs. Call once, before any op ran; runs no op itself."""
    cpus = tf_config.list_physical_devices("CPU")
    tf_config.set_logical_device_configuration(cpus[0], [tf.config.LogicalDeviceConfiguration()] * count)
    physical = [tf_context.PhysicalDevice(name=f"/physical_device:GPU:{i}", device_type="GPU") for i in range(count)]
    _answer_lists(physical)
    _answer_strategies(count)


def as_cpu(device: Any) -> Any:
    """Turn ``/gpu:1`` into the device that stands for it, ``/CPU:1``; anything else is returned as it is."""
    if isinstance(device, tf_context.LogicalDevice):
        device = device.name
    return _GPU.sub("CPU:", device) if isinstance(device, str) else device


def _answer_lists(physical: list[Any]) -> None:
    list_physical, list_logical = tf_config.list_physical_devices, tf_config.list_logical_devices

    def list_physical_devices(device_type: str | None = None) -> list[Any]:
        real: list[Any] = list_physical(device_type)
        return [*real, *physical] if device_type in (None, "GPU") else real

    def list_logical_devices(device_type: str | None = None) -> list[Any]:
        cpus: list[Any] = list_logical("CPU")
        stand_ins = [tf_context.LogicalDevice(name=f"/device:GPU:{i}", device_type="GPU") for i in range(len(cpus))]
        match device_type:
            case None:
                return [cpus[0], *stand_ins]
            case "GPU":
                return stand_ins
            case "CPU":
                return cpus[:1]
            case _:
                others: list[Any] = list_logical(device_type)
                return others

    get_growth, set_growth = tf_config.get_memory_growth, tf_config.set_memory_growth
    growth: dict[str, bool] = {}

    def get_memory_growth(device: Any) -> bool:
        return growth.get(device.name, False) if device in physical else get_growth(device)

    def set_memory_growth(device: Any, enable: bool) -> None:
        if device in physical:
            growth[device.name] = enable
        else:
            set_growth(device, enable)

    replacements: dict[str, Callable[..., Any]] = {
        "list_physical_devices": list_physical_devices,
        "list_logical_devices": list_logical_devices,
        "get_memory_growth": get_memory_growth,
        "set_memory_growth": set_memory_growth,
    }
    for name, replacement in replacements.items():
        original = getattr(tf_config, name)
        functools.update_wrapper(replacement, original)
        setattr(tf_config, name, replacement)
        for module in (tf.config, tf.config.experimental):
            if hasattr(module, name):
                setattr(module, name, replacement)


def _answer_strategies(count: int) -> None:
    everything = [f"/device:CPU:{i}" for i in range(count)]
    _with_devices(mirrored_strategy.MirroredStrategy, "devices", lambda d: [as_cpu(x) for x in d] if d else everything)
    central = central_storage_strategy.CentralStorageStrategy
    _with_devices(central, "compute_devices", lambda d: [as_cpu(x) for x in d] if d else everything)
    _with_devices(tf.distribute.OneDeviceStrategy, "device", as_cpu)


def _with_devices(strategy: type, argument: str, translate: Callable[[Any], Any]) -> None:
    init = strategy.__init__  # type: ignore[misc]

    @functools.wraps(init)
    def with_stand_ins(self: Any, *args: Any, **kwargs: Any) -> None:
        if args:
            args = (translate(args[0]), *args[1:])
        else:
            kwargs[argument] = translate(kwargs.get(argument))
        init(self, *args, **kwargs)

    strategy.__init__ = with_stand_ins  # type: ignore[misc]
