"""The lists of devices where GPUs are simulated.

TensorFlow's context keeps them in Python until its first op: which GPUs there are, which of them are visible, whether
their memory grows, into how many logical ones each is split. Simulated GPUs are entered in these same lists, so every
rule and every error about them is TensorFlow's own. Only when it makes its devices, N logical CPU devices take the
place of N logical GPUs, and where it lists what it has made, they are listed as both.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from tensorflow.core.framework import device_attributes_pb2
from tensorflow.python.client import device_lib
from tensorflow.python.eager import context as tf_context

from runners.guest.accelerators.gpu_rules import present_devices, visible_gpu_count
from runners.guest.reporting import notices
from runners.guest.tf_patches import gpu_memory
from runners.sandbox.nvidia_smi import GPU_NAME


def show_gpus(count: int) -> None:
    """Have TensorFlow's context of this process see ``count`` GPUs. Call once, before any op ran; runs no op."""
    _Physical(count).install()
    _list_logical()
    _list_local()


def logical_gpus() -> int:
    """How many logical GPUs there are or, before the first op, will be."""
    return _logical(tf_context.context(), "GPU")


def is_final() -> bool:
    """Whether that number is final."""
    return tf_context.context()._context_handle is not None


class _Physical:
    """``count`` GPUs in each context, as far as the learner's ``CUDA_VISIBLE_DEVICES`` shows them."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._shown_in: Any = None

    def install(self) -> None:
        context = tf_context.Context
        find, details = context._initialize_physical_devices, context.get_device_details
        split = context.set_logical_device_configuration

        def initialize_physical_devices(this: Any, reinitialize: bool = False) -> None:
            find(this, reinitialize)
            if self._shown_in is not this or reinitialize:
                self._shown_in = this
                self._enter(this)

        def get_device_details(this: Any, device: Any) -> dict[str, Any]:
            found: dict[str, Any] = {"device_name": GPU_NAME} if device in _gpus(this) else details(this, device)
            return found

        def set_logical_device_configuration(this: Any, dev: Any, virtual_devices: Any) -> None:
            split(this, dev, virtual_devices)
            if dev in _gpus(this):
                notices.notify_once("gpu-memory-limits")

        context._initialize_physical_devices = initialize_physical_devices
        context.get_device_details = get_device_details
        context.set_logical_device_configuration = set_logical_device_configuration
        _hide_from_keras(context)

    def _enter(self, context: Any) -> None:
        here = visible_gpu_count(self._count, os.environ.get("CUDA_VISIBLE_DEVICES"))
        gpus = [tf_context.PhysicalDevice(f"/physical_device:GPU:{i}", "GPU") for i in range(here)]
        context._physical_devices = [d for d in context._physical_devices if d.device_type != "GPU"] + gpus
        context._physical_device_to_index = {d: i for i, d in enumerate(context._physical_devices)}
        context._visible_device_list = list(context._physical_devices)
        context._memory_growth_map |= dict.fromkeys(gpus)


def _list_logical() -> None:
    context = tf_context.Context
    configure, make = context.config.fget, context._initialize_logical_devices
    info, reset = context.get_memory_info, context.reset_memory_stats

    def config(this: Any) -> Any:
        proto = configure(this)
        proto.device_count["CPU"] = max(proto.device_count["CPU"], _logical(this, "GPU"))
        proto.device_count["GPU"] = 0
        proto.ClearField("gpu_options")
        return proto

    def initialize_logical_devices(this: Any) -> None:
        make(this)
        gpus = this._num_gpus = _logical(this, "GPU")
        made = [(d.name, d.device_type) for d in this._logical_devices]
        shown = present_devices(made, max(1, _logical(this, "CPU")), gpus)
        this._logical_devices = [tf_context.LogicalDevice(*device) for device in shown]

    def get_memory_info(this: Any, dev: Any) -> dict[str, int]:
        this.ensure_initialized()
        held: dict[str, int] = gpu_memory.info(dev, _logical(this, "GPU")) or info(this, dev)
        return held

    def reset_memory_stats(this: Any, dev: Any) -> None:
        this.ensure_initialized()
        if not gpu_memory.reset(dev, _logical(this, "GPU")):
            reset(this, dev)

    context.config = property(config)
    context._initialize_logical_devices = initialize_logical_devices
    context.get_memory_info = get_memory_info
    context.reset_memory_stats = reset_memory_stats


def _list_local() -> None:
    """``device_lib.list_local_devices``, and what asks it: ``tf.test.is_gpu_available``, ``gpu_device_name``."""
    original = device_lib.list_local_devices

    def list_local_devices(session_config: Any = None) -> list[Any]:
        found: list[Any] = original(session_config)
        return found + [
            device_attributes_pb2.DeviceAttributes(
                name=f"/device:GPU:{i}",
                device_type="GPU",
                physical_device_desc=f"device: {i}, name: {GPU_NAME}, simulated",
            )
            for i in range(logical_gpus())
        ]

    device_lib.list_local_devices = list_local_devices


def _hide_from_keras(context: Any) -> None:
    """Keras asks for GPUs to choose kernels that only CUDA has, and XLA: it is told what there really is."""
    for name in ("list_physical_devices", "list_logical_devices"):
        setattr(context, name, _hidden(getattr(context, name)))


def _hidden(listing: Any) -> Any:
    def list_devices(this: Any, device_type: str | None = None) -> list[Any]:
        devices: list[Any] = listing(this, device_type)
        if device_type == "CPU":  # a strategy asks often
            return devices
        asks = sys._getframe(2)  # between is TensorFlow's function of the same name
        if _is_keras(asks):
            return [d for d in devices if d.device_type != "GPU"]
        return devices

    return list_devices


def _is_keras(frame: Any) -> bool:
    asks = str(frame.f_globals.get("__name__"))
    return asks.startswith(("keras.src.", "tf_keras.src.")) and not asks.endswith(".distribution_lib")


def _gpus(context: Any) -> list[Any]:
    return [d for d in context._physical_devices or () if d.device_type == "GPU"]


def _logical(context: Any, kind: str) -> int:
    """Logical devices of a type that the visible physical ones are split into."""
    context._initialize_physical_devices()
    visible = [d for d in context._visible_device_list if d.device_type == kind]
    splits = [context._virtual_device_map.get(d) for d in visible]
    return sum(1 if split is None else len(split) for split in splits)
