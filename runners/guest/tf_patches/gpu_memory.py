"""Estimates how much memory a simulated GPU holds.

TensorFlow does not count the memory of logical CPU devices, and all of them share the memory of one process. The
estimate is the number of bytes in the tensors and variables that are on the device at that moment, including each copy
that a strategy makes. It does not include temporary memory of a step or memory that TensorFlow keeps for later. The
peak is the largest estimate since the last reset; estimates are made only when a program asks.
"""

from __future__ import annotations

import gc
from typing import Any

from tensorflow.python.framework import dtypes, ops
from tensorflow.python.ops import resource_variable_ops

from runners.guest.accelerators.gpu_rules import index_of
from runners.guest.reporting import notices

_WITHOUT_BYTES = (dtypes.string, dtypes.resource, dtypes.variant)

_peaks: dict[int, int] = {}


def info(device: object, gpus: int) -> dict[str, int] | None:
    """The result of ``get_memory_info`` for one of ``gpus`` GPUs, in bytes; None if ``device`` is not one of them."""
    index = index_of(device)
    if index is None or index >= gpus:
        return None
    notices.notify_once("gpu-memory", gpu=f"GPU:{index}")
    current = bytes_held(index)
    _peaks[index] = max(current, _peaks.get(index, 0))
    return {"current": current, "peak": _peaks[index]}


def reset(device: object, gpus: int) -> bool:
    """Reset the peak of that GPU; returns False if ``device`` is not one."""
    index = index_of(device)
    if index is None or index >= gpus:
        return False
    _peaks[index] = bytes_held(index)
    return True


def bytes_held(index: int) -> int:
    """Bytes of the live tensors and variables on the device that simulates a GPU."""
    tensor_class, variable_class = ops.EagerTensor, resource_variable_ops.BaseResourceVariable
    total = 0
    for thing in gc.get_objects():
        kind = type(thing)
        if issubclass(kind, tensor_class):
            total += _bytes(thing, thing.device, index)
        elif issubclass(kind, variable_class) and isinstance(handle := thing._handle, tensor_class):
            total += _bytes(thing, handle.device, index)
    return total


def _bytes(thing: Any, device: str, index: int) -> int:
    if thing.dtype in _WITHOUT_BYTES or not device.endswith(f":CPU:{index}"):
        return 0
    return int(thing.shape.num_elements() or 0) * int(thing.dtype.size)
