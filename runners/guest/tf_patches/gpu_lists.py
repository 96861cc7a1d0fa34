"""Simulates the lists of GPUs.

Until its first op, TensorFlow's context keeps in Python which GPUs there are, which of them are visible, whether their
memory grows, and into how many logical ones each is split. Simulated GPUs are entered in these same lists, so every
rule and every error about them is TensorFlow's own. When TensorFlow creates its devices, N logical CPU devices replace
N logical GPUs, and its lists of created devices show them as both.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from tensorflow.core.framework import device_attributes_pb2
from tensorflow.python.eager import context as tf_context

from runners.guest.accelerators.gpu_rules import present_devices, visible_gpu_count
from runners.guest.reporting import notices
from runners.guest.tf_patches import gpu_memory
from runners.guest.tf_patches.registry import Subject
from runners.sandbox.nvidia_smi import GPU_NAME

_TESTS = "tests/unit/runners/guest/tf_patches/test_gpu.py::"
_CONTEXT = "tensorflow.python.eager.context:Context."

subject = Subject(
    __name__,
    when="gpu",
    because="there are no GPUs: logical CPU devices simulate them",
    since="TensorFlow 2.21",
    test=f"{_TESTS}test_answers_are_those_of_a_machine_with_gpus",
    essential=True,
)


def show_gpus(count: int) -> None:
    """Make this process's TensorFlow context see ``count`` GPUs. Call once, before any op runs; runs no op."""
    subject.apply(_SimulatedGpus(count))


def logical_gpus() -> int:
    """How many logical GPUs there are or, before the first op, will be."""
    return _logical(tf_context.context(), "GPU")


def is_final() -> bool:
    """Whether that number can no longer change."""
    return tf_context.context()._context_handle is not None


subject.needs(f"{_CONTEXT}__init__", relies_on=("._context_handle", "._virtual_device_map"))


class _SimulatedGpus:
    """``count`` GPUs in each context, or as many as the learner's ``CUDA_VISIBLE_DEVICES`` shows."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._entered_in: Any = None

    @subject.patch(
        f"{_CONTEXT}_initialize_physical_devices",
        relies_on=(
            "(self, reinitialize)",
            "._physical_devices",
            "._physical_device_to_index",
            "._visible_device_list",
            "._memory_growth_map",
        ),
    )
    def find(self, original: Any, context: Any, reinitialize: bool = False) -> None:
        """Add the GPUs when TensorFlow looks for devices."""
        original(context, reinitialize)
        if self._entered_in is not context or reinitialize:
            self._entered_in = context
            self._enter(context)

    def _enter(self, context: Any) -> None:
        here = visible_gpu_count(self._count, os.environ.get("CUDA_VISIBLE_DEVICES"))
        gpus = [tf_context.PhysicalDevice(f"/physical_device:GPU:{i}", "GPU") for i in range(here)]
        context._physical_devices = [d for d in context._physical_devices if d.device_type != "GPU"] + gpus
        context._physical_device_to_index = {d: i for i, d in enumerate(context._physical_devices)}
        context._visible_device_list = list(context._physical_devices)
        context._memory_growth_map |= dict.fromkeys(gpus)


@subject.patch(f"{_CONTEXT}get_device_details", relies_on=("(self, device)",))
def _details(_: _SimulatedGpus, original: Any, context: Any, device: Any) -> dict[str, Any]:
    details: dict[str, Any] = {"device_name": GPU_NAME} if device in _gpus(context) else original(context, device)
    return details


@subject.patch(f"{_CONTEXT}set_logical_device_configuration", relies_on=("(self, dev, virtual_devices)",))
def _split(_: _SimulatedGpus, original: Any, context: Any, dev: Any, virtual_devices: Any) -> None:
    original(context, dev, virtual_devices)
    if dev in _gpus(context):
        notices.notify_once("gpu-memory-limits")


@subject.patch(
    f"{_CONTEXT}list_physical_devices",
    relies_on=("(self, device_type)",),
    because="Keras would choose kernels that only CUDA has, and XLA",
    test=f"{_TESTS}test_keras_takes_kernels_that_the_cpu_has",
)
@subject.patch(
    f"{_CONTEXT}list_logical_devices",
    relies_on=("(self, device_type)",),
    because="Keras would choose kernels that only CUDA has, and XLA",
    test=f"{_TESTS}test_keras_takes_kernels_that_the_cpu_has",
)
def _list_devices(_: _SimulatedGpus, original: Any, context: Any, device_type: str | None = None) -> list[Any]:
    devices: list[Any] = original(context, device_type)
    if device_type == "CPU":  # a strategy asks often
        return devices
    caller = sys._getframe(3)  # in between are the patched method and TensorFlow's function of the same name
    if _is_keras(caller):
        return [d for d in devices if d.device_type != "GPU"]
    return devices


def _is_keras(frame: Any) -> bool:
    module = str(frame.f_globals.get("__name__"))
    return module.startswith(("keras.src.", "tf_keras.src.")) and not module.endswith(".distribution_lib")


@subject.patch(f"{_CONTEXT}config", relies_on=("(self)",))
def _configure(_: _SimulatedGpus, original: Any, context: Any) -> Any:
    proto = original(context)
    proto.device_count["CPU"] = max(proto.device_count["CPU"], _logical(context, "GPU"))
    proto.device_count["GPU"] = 0
    proto.ClearField("gpu_options")
    return proto


@subject.patch(
    f"{_CONTEXT}_initialize_logical_devices",
    relies_on=("(self)", "._num_gpus", "._logical_devices"),
    used_by=(f"{_CONTEXT}ensure_initialized",),
)
def _make_logical_devices(_: _SimulatedGpus, original: Any, context: Any) -> None:
    original(context)
    gpus = context._num_gpus = _logical(context, "GPU")
    made = [(d.name, d.device_type) for d in context._logical_devices]
    shown = present_devices(made, max(1, _logical(context, "CPU")), gpus)
    context._logical_devices = [tf_context.LogicalDevice(*device) for device in shown]


@subject.patch(f"{_CONTEXT}get_memory_info", relies_on=("(self, dev)", ".ensure_initialized"))
def _get_memory_info(_: _SimulatedGpus, original: Any, context: Any, dev: Any) -> dict[str, int]:
    context.ensure_initialized()
    held: dict[str, int] = gpu_memory.info(dev, _logical(context, "GPU")) or original(context, dev)
    return held


@subject.patch(f"{_CONTEXT}reset_memory_stats", relies_on=("(self, dev)", ".ensure_initialized"))
def _reset_memory_stats(_: _SimulatedGpus, original: Any, context: Any, dev: Any) -> None:
    context.ensure_initialized()
    if not gpu_memory.reset(dev, _logical(context, "GPU")):
        original(context, dev)


@subject.patch("tensorflow.python.client.device_lib:list_local_devices", relies_on=("(session_config)",))
def _list_local_devices(_: _SimulatedGpus, original: Any, session_config: Any = None) -> list[Any]:
    found: list[Any] = original(session_config)
    return found + [
        device_attributes_pb2.DeviceAttributes(
            name=f"/device:GPU:{i}", device_type="GPU", physical_device_desc=f"device: {i}, name: {GPU_NAME}, simulated"
        )
        for i in range(logical_gpus())
    ]


@subject.patch(
    "tensorflow.python.framework.test_util:IsGoogleCudaEnabled",
    used_by=("tensorflow.python.platform.test:is_built_with_cuda",),
    because="the runner image has TensorFlow's build for CPUs, and programs ask whether theirs was made for GPUs",
)
def _is_cuda_build(_: _SimulatedGpus, _original: Any) -> bool:
    return True


def _gpus(context: Any) -> list[Any]:
    return [d for d in context._physical_devices or () if d.device_type == "GPU"]


def _logical(context: Any, kind: str) -> int:
    """The number of logical devices that the visible physical ones of a type are split into."""
    context._initialize_physical_devices()
    visible = [d for d in context._visible_device_list if d.device_type == kind]
    splits = [context._virtual_device_map.get(d) for d in visible]
    return sum(1 if split is None else len(split) for split in splits)
