"""Memory growth of a real GPU that several sessions share: TensorFlow rejects it for a GPU with a memory limit.

The memory of shared GPUs always grows up to their limit, so asking for it is not an error.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from runners.guest.tf_patches.registry import Subject

_CONFIG = "tensorflow.python.framework.config:"
_PUBLIC = "tensorflow:config.experimental."

subject = Subject(
    __name__,
    when="shared gpu",
    because="programs ask for memory growth, which TensorFlow rejects for GPUs with memory limits",
    since="TensorFlow 2.21",
    test="tests/unit/runners/guest/tf_patches/test_shared_gpus.py::test_a_gpu_with_a_limit_may_be_asked_to_grow",
)


def allow_growth(names: Collection[str]) -> None:
    """Let programs ask for memory growth of the physical GPUs with these names."""
    subject.apply(frozenset(names))


@subject.patch(f"{_CONFIG}get_memory_growth", relies_on=("(device)",), also=(f"{_PUBLIC}get_memory_growth",))
def _get_memory_growth(names: Collection[str], original: Any, device: Any) -> Any:
    return True if device.name in names else original(device)


@subject.patch(f"{_CONFIG}set_memory_growth", relies_on=("(device, enable)",), also=(f"{_PUBLIC}set_memory_growth",))
def _set_memory_growth(names: Collection[str], original: Any, device: Any, enable: bool) -> None:
    if device.name not in names:
        original(device, enable)
    elif not enable:
        raise ValueError("This GPU is shared: its memory grows, up to the limit of its logical devices.")
