"""Names simulated GPUs and decides which are visible. Pure: no TensorFlow here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Any

Device = tuple[str, str]
"""Name and type of a logical device."""
Components = tuple[str | None, Any, Any, str | None, Any]
"""Job, replica, task, type and index; None for a part that a name leaves out."""

_GPU = re.compile(r"(?:^|[/:])gpu:(\d+)$", re.IGNORECASE)


def cpu_stand_in(name: Components, gpus: int) -> Components:
    """Name the CPU device that simulates a GPU. Pure.

    A GPU that does not exist keeps its name, so that TensorFlow reports it as it would on a real machine.
    """
    job, replica, task, kind, index = name
    if kind is None or kind.upper() != "GPU" or not gpus or (index is not None and int(index) >= gpus):
        return name
    return job, replica, task, "CPU", index


def index_of(name: object) -> int | None:
    """The GPU index at the end of a TensorFlow device name, such as ``GPU:1`` or ``/device:GPU:1``. Pure."""
    match = _GPU.search(name) if isinstance(name, str) else None
    return int(match[1]) if match else None


def visible_gpu_count(count: int, setting: str | None) -> int:
    """How many of ``count`` GPUs ``CUDA_VISIBLE_DEVICES`` shows; CUDA stops at the first invalid entry. Pure."""
    if setting is None:
        return count
    shown: set[str] = set()
    for word in setting.split(","):
        index = word.strip()
        if not (index.isdecimal() and int(index) < count) or index in shown:
            break
        shown.add(index)
    return len(shown)


def present_devices(devices: Sequence[Device], cpus: int, gpus: int) -> list[Device]:
    """Relabel logical CPUs that simulate GPUs, so that the list shows ``cpus`` CPUs and ``gpus`` GPUs. Pure.

    In a list for several machines, this applies to each that has as many devices as this one.
    """
    shown: list[Device] = []
    for place, here in groupby(devices, lambda d: d[0].rpartition("/device:")[0]):
        machine = list(here)
        alike = [kind for _, kind in machine] == ["CPU"] * max(cpus, gpus)
        shown += machine[:cpus] if alike else machine
        shown += [(f"{place}/device:GPU:{i}", "GPU") for i in range(gpus)] if alike else []
    return shown
