"""Translates names of simulated GPUs: ``/gpu:1`` becomes ``/device:CPU:1``, the logical device that simulates it.

TensorFlow parses every device name in one place, whether it comes from a learner's ``tf.device``, a strategy or
``tf.data``. The name is translated there and the result is cached, so ops do not become slower. Names that TensorFlow
returns, such as a tensor's ``.device``, are those of the actual device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from tensorflow.python.framework import device
from tensorflow.python.framework.device_spec import DeviceSpecV2

from runners.guest.accelerators.gpu_rules import Components, cpu_stand_in, index_of
from runners.guest.reporting import notices
from runners.guest.tf_patches.gpu_lists import is_final, logical_gpus
from runners.guest.tf_patches.registry import Subject

_DEVICE = "tensorflow.python.framework.device:"
_DTENSOR = "tensorflow.dtensor.python."
_TEST_OF_DTENSOR = "tests/unit/runners/guest/tf_patches/test_gpu.py::test_dtensor_makes_meshes_of_gpus"

subject = Subject(
    __name__,
    when="gpu",
    because="each simulated GPU is a logical CPU device",
    since="TensorFlow 2.21",
    test="tests/unit/runners/guest/tf_patches/test_gpu.py::test_answers_are_those_of_a_machine_with_gpus",
    essential=True,
)
first_name = Subject(
    "gpu_name_notice",
    when="gpu",
    because="a learner who names a GPU reads CPU in the names of tensors",
    since="TensorFlow 2.21",
    test="tests/functional/runner/test_gpus.py"
    "::test_a_learner_who_names_a_gpu_is_told_once_which_device_its_tensors_report",
)


def translate() -> None:
    """Make TensorFlow translate names of GPUs to those of their stand-ins. Call after ``gpu_lists.show_gpus``."""
    subject.apply({})
    notice = _Notice()
    notice.stop = first_name.apply(notice)


@subject.patch(
    "tensorflow.python.framework.device_spec:DeviceSpecV2._string_to_components",
    relies_on=("(spec)",),
    used_by=("tensorflow.python.framework.device_spec:DeviceSpecV2.from_string",),
)
def _read(known: dict[str | None, Components], original: Any, spec: str | None = None) -> Components:
    """Parse a name; ``known`` caches names once the number of GPUs is final."""
    found = known.get(spec)
    if found is None:
        found = cpu_stand_in(original(spec), logical_gpus())
        if is_final():
            known[spec] = found
    return found


@subject.patch(
    f"{_DEVICE}merge_device",
    relies_on=("(spec)",),
    used_by=("tensorflow.python.framework.ops:_UserDeviceSpec.__init__",),
)
def _merge(_: object, original: Any, spec: Any) -> Any:
    """Turn a ``tf.DeviceSpec``, which a graph would use as it is, into a name, which is translated."""
    return original(spec.to_string() if device.is_device_spec(spec) else spec)


@subject.patch(
    "tensorflow.python.framework.ops:_EagerTensorBase._copy_nograd",
    relies_on=("(self, ctx, device_name)", f"{_DEVICE}canonical_name"),
)
def _copy(_: object, original: Any, self: Any, ctx: Any = None, device_name: str | None = None) -> Any:
    """Translate the device of ``tensor.gpu()``, which does not parse a name."""
    return original(self, ctx, device.canonical_name(device_name) if device_name else device_name)


@subject.patch(
    f"{_DTENSOR}config:num_local_devices",
    relies_on=("(device_type)",),
    used_by=(f"{_DTENSOR}config:local_devices", f"{_DTENSOR}config:num_global_devices"),
    also=("tensorflow:experimental.dtensor.num_local_devices",),
    test=_TEST_OF_DTENSOR,
)
def _count_devices(_: object, original: Any, device_type: str) -> int:
    """Count simulated GPUs; DTensor looks into the configuration that C++ gets, which has none."""
    count: int = logical_gpus() if device_type.upper() == "GPU" else original(device_type)
    return count


@subject.patch(
    f"{_DTENSOR}mesh_util:_make_device_specs",
    relies_on=("(devices, device_type)",),
    used_by=(f"{_DTENSOR}mesh_util:create_mesh", f"{_DTENSOR}mesh_util:create_distributed_mesh"),
    test=_TEST_OF_DTENSOR,
)
def _devices_of_mesh(
    _: object, original: Any, devices: Sequence[Any] | None = None, device_type: str | None = None
) -> tuple[list[Any], str]:
    """Make a mesh of GPUs from their stand-ins, once TensorFlow has compared the types."""
    specs, kind = original(devices and [_untranslated(each) for each in devices], device_type)
    specs = [DeviceSpecV2.from_string(spec.to_string()) for spec in specs]
    return specs, specs[0].device_type if specs else kind


def _untranslated(device: str | DeviceSpecV2) -> Any:
    spec = DeviceSpecV2.from_string(device) if isinstance(device, str) else device
    return spec if index_of(device) is None else spec.replace(device_type="GPU")


class _Notice:
    """Tells the learner, when ``tf.device`` first names a GPU, which device name its tensors report."""

    stop: Callable[[], None]

    @first_name.patch("tensorflow:device", relies_on=("(device_name)",))
    def enter(self, original: Any, device_name: Any) -> AbstractContextManager[None]:
        """Enter the device's scope, and send the notice."""
        index = index_of(getattr(device_name, "name", device_name))
        if index is not None and index < logical_gpus():
            self.stop()
            notices.notify_once("gpu-names", gpu=f"GPU:{index}", device=f"CPU:{index}")
        scope: AbstractContextManager[None] = original(device_name)
        return scope
