"""Finds real accelerators: ``python -m runners.devices.discovery`` prints an ``allocation.HardwareListing`` as JSON.

It queries NVML in a separate, short-lived process: neither the supervisor nor a zygote ever opens a GPU, and nothing
initializes CUDA. If ``/dev`` shows no accelerator, that process is not even started.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any

from runners.devices import tpu_vm
from runners.devices.allocation import GpuCard, HardwareListing, MigInstance

_MiB = 1024 * 1024
_PATTERNS = ("nvidia[0-9]*", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-caps/*", "accel[0-9]*", "vfio/*")
_PATIENCE_S = 30.0
"""A driver that has to start its GPUs first takes seconds for each one."""
_TPU_FILES = ("/run/tpu-env", "/home/tpu-env", "/tmp/tpu-env")  # noqa: S108 - only read, as TPU VMs write it
_LIBTPU = ("/usr/lib/libtpu.so", "/lib/libtpu.so")
"""Where a TPU VM's image has libtpu, if no Python package provides it."""
_TPU_FACTS = ("bus/pci", "class/accel", "class/vfio", "class/vfio-dev", "kernel/iommu_groups", "devices/pci*")
"""Below ``/sys``: lists of devices, and the folders that their links lead to."""
_FOR_OTHERS = 0o006
_TPU_TYPE = re.compile(r"^\s*ACCELERATOR_TYPE\s*[:=]\s*['\"]?([a-z0-9-]{2,32})['\"]?\s*$", re.MULTILINE)


def discover() -> HardwareListing:
    """List this machine's accelerators; a failure is reported in the listing's ``trouble``."""
    nodes = _nodes()
    if not nodes:
        return HardwareListing()
    command = [sys.executable, "-m", "runners.devices.discovery"]
    try:
        said = subprocess.run(command, capture_output=True, check=True, timeout=_PATIENCE_S, text=True)
        return HardwareListing.from_json(said.stdout)
    except subprocess.TimeoutExpired:
        trouble = f"the driver did not list its GPUs within {_PATIENCE_S:g} s"
    except subprocess.CalledProcessError as e:
        trouble = f"listing the GPUs ended with status {e.returncode}: {e.stderr.strip()[-200:]}"
    except (OSError, ValueError, TypeError, KeyError) as e:
        trouble = f"listing the GPUs failed: {e}"
    return HardwareListing(nodes=nodes, trouble=trouble)


def _nodes() -> tuple[str, ...]:
    dev = Path("/dev")
    found = (path for pattern in _PATTERNS for path in sorted(dev.glob(pattern)))
    return tuple(str(path.relative_to(dev)) for path in found if path.is_char_device())


def _look() -> HardwareListing:
    nodes = _nodes()
    cards: tuple[GpuCard, ...] = ()
    trouble = ""
    if any(node.startswith("nvidia") for node in nodes):
        try:
            cards = _cards()
        except ImportError:
            trouble = "GPUs cannot be listed: the package nvidia-ml-py is not installed"
        except Exception as e:
            trouble = f"GPUs cannot be listed: {e}"
    tpu = _tpu() if any(map(tpu_vm.is_device_node, nodes)) else ""
    if not tpu:
        return HardwareListing(nodes, cards, trouble=trouble)
    return HardwareListing(
        nodes, cards, tpu, _has_tpu_software(), _tpu_library(), _tpu_facts(), _closed(nodes), _pinned_mb(), trouble
    )


def _cards() -> tuple[GpuCard, ...]:
    """List all GPUs with NVML. Raises ImportError without its Python package, and whatever that package raises."""
    import pynvml

    pynvml.nvmlInit()
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
        return tuple(_card(pynvml, handle) for handle in handles)
    finally:
        pynvml.nvmlShutdown()


def _card(nvml: Any, handle: Any) -> GpuCard:
    minor = nvml.nvmlDeviceGetMinorNumber(handle)
    try:
        cut_up = nvml.nvmlDeviceGetMigMode(handle)[0] == nvml.NVML_DEVICE_MIG_ENABLE
    except nvml.NVMLError_NotSupported:
        cut_up = False
    return GpuCard(
        uuid=_text(nvml.nvmlDeviceGetUUID(handle)),
        name=_text(nvml.nvmlDeviceGetName(handle)),
        minor=minor,
        memory_mb=nvml.nvmlDeviceGetMemoryInfo(handle).total // _MiB,
        capability=tuple(nvml.nvmlDeviceGetCudaComputeCapability(handle)),
        mig=cut_up,
        instances=_instances(nvml, handle, minor) if cut_up else (),
    )


def _instances(nvml: Any, handle: Any, minor: int) -> tuple[MigInstance, ...]:
    found = []
    for number in range(nvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        try:
            part = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, number)
        except (nvml.NVMLError_NotFound, nvml.NVMLError_InvalidArgument):
            continue  # not every possible instance exists
        gpu, compute = nvml.nvmlDeviceGetGpuInstanceId(part), nvml.nvmlDeviceGetComputeInstanceId(part)
        folder = f"gpu{minor}/mig/gi{gpu}"
        found.append(
            MigInstance(
                uuid=_text(nvml.nvmlDeviceGetUUID(part)),
                name=_text(nvml.nvmlDeviceGetName(part)),
                memory_mb=nvml.nvmlDeviceGetMemoryInfo(part).total // _MiB,
                caps=(_cap(f"{folder}/access"), _cap(f"{folder}/ci{compute}/access")),
            )
        )
    return tuple(found)


def _cap(name: str) -> int:
    """Read the minor number of an instance's device node. Raises OSError, or ValueError if the file has none."""
    said = Path("/proc/driver/nvidia/capabilities", name).read_text()
    number = re.search(r"DeviceFileMinor:\s*(\d+)", said)
    if number is None:
        raise ValueError(f"{name} names no device node")
    return int(number[1])


def _tpu() -> str:
    """Read the accelerator type of a TPU VM from its environment or from the file that its agent writes."""
    if name := os.environ.get("TPU_ACCELERATOR_TYPE", ""):
        return name
    for file in map(Path, _TPU_FILES):
        try:
            found = _TPU_TYPE.search(file.read_text())
        except OSError:
            continue
        if found:
            return found[1]
    return ""


def _has_tpu_software() -> bool:
    try:
        return bool(version("tensorflow-tpu"))
    except PackageNotFoundError:
        return False


def _tpu_library() -> str:
    """Find libtpu. A session sees Python's packages and the system's libraries."""
    places = list(map(Path, _LIBTPU))
    with contextlib.suppress(PackageNotFoundError):
        places.insert(0, Path(str(distribution("libtpu").locate_file("libtpu/libtpu.so"))))
    return next((str(place) for place in places if place.is_file()), "")


def _tpu_facts() -> tuple[str, ...]:
    return tuple(str(path) for pattern in _TPU_FACTS for path in sorted(Path("/sys").glob(pattern)))


def _closed(nodes: tuple[str, ...]) -> tuple[str, ...]:
    """Filter the nodes that only root or a group may open: sessions are in no group."""
    return tuple(node for node in nodes if Path("/dev", node).stat().st_mode & _FOR_OTHERS != _FOR_OTHERS)


def _pinned_mb() -> int | None:
    most = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
    return None if most == resource.RLIM_INFINITY else most // _MiB


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


if __name__ == "__main__":
    print(_look().to_json())
