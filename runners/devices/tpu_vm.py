"""A TPU VM that is one whole machine: what it has, whether a session can be given it, and what libtpu reads then. Pure.

libtpu, the library that drives a TPU, asks the cloud's metadata server what machine it is on. A session has no network,
so its environment says it: the same variables that a pod on Kubernetes is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TpuType:
    """One accelerator type."""

    cores: int
    """What TensorFlow counts."""
    chips: str
    """How they lie, as in ``2,2,1``."""
    pluggable: bool = False
    """TensorFlow takes libtpu as a plug-in of its own; for the older ones it is built in."""


TPU_TYPES: Mapping[str, TpuType] = {
    "v2-8": TpuType(8, "2,2,1"),
    "v3-8": TpuType(8, "2,2,1"),
    "v4-8": TpuType(4, "2,2,1"),
    "v5litepod-1": TpuType(1, "1,1,1", pluggable=True),
    "v5litepod-4": TpuType(4, "2,2,1", pluggable=True),
    "v5litepod-8": TpuType(8, "2,4,1", pluggable=True),
    "v6e-1": TpuType(1, "1,1,1", pluggable=True),
    "v6e-4": TpuType(4, "2,2,1", pluggable=True),
    "v6e-8": TpuType(8, "2,4,1", pluggable=True),
}
"""By the accelerator type that the machine names."""

_PINNED_MB = 1024
"""Host memory that a driver behind ``/dev/vfio`` locks at the least."""


@dataclass(frozen=True, slots=True)
class Tpu:
    """A TPU that a session can be given."""

    kind: str
    """Its accelerator type, a key of ``TPU_TYPES``."""
    nodes: tuple[str, ...]
    """Device nodes below ``/dev``."""
    library: str
    """Where libtpu lies."""
    facts: tuple[str, ...] = ()
    """Folders below ``/sys`` in which libtpu finds the chips."""

    @property
    def cores(self) -> int:
        """What TensorFlow counts."""
        return TPU_TYPES[self.kind].cores


def is_device_node(name: str) -> bool:
    """Whether a device node below ``/dev`` is a TPU's."""
    return name.startswith(("accel", "vfio/"))


def why_unusable(
    kind: str, nodes: tuple[str, ...], *, software: bool, library: str, closed: tuple[str, ...], pinned_mb: int | None
) -> str:
    """Why sessions cannot have a TPU that is there, and what to do; empty if they can.

    Args:
        kind: its accelerator type.
        nodes: its device nodes.
        software: whether the TensorFlow installed here can drive a TPU.
        library: where libtpu lies, empty if it is missing.
        closed: device nodes that a plain user may not open.
        pinned_mb: how much memory a process here may lock, None for any amount.
    """
    if kind not in TPU_TYPES:
        return "Lockstep knows only TPU VMs that are one whole machine"
    if not software:
        return "the TensorFlow installed here cannot drive it; install tensorflow-tpu in its place"
    if not library:
        return "libtpu is missing; install it beside tensorflow-tpu: pip install libtpu"
    if shut := [node for node in nodes if node in closed]:
        return f"sessions may not open /dev/{shut[0]}; as root: chmod a+rw {' '.join(f'/dev/{node}' for node in shut)}"
    if pinned_mb is not None and pinned_mb < _PINNED_MB and any(node.startswith("vfio/") for node in nodes):
        return (
            f"its driver locks memory, and the runner may lock {pinned_mb} MB: "
            "start it with LimitMEMLOCK=infinity under systemd, --ulimit memlock=-1 under Docker"
        )
    return ""


def environment(tpu: Tpu) -> tuple[tuple[str, str], ...]:
    """What libtpu and TensorFlow read of it."""
    shape = TPU_TYPES[tpu.kind]
    plug = (("NEXT_PLUGGABLE_DEVICE_USE_C_API", "true"), ("TF_PLUGGABLE_DEVICE_LIBRARY_PATH", tpu.library))
    return (
        ("TPU_LIBRARY_PATH", tpu.library),
        ("TPU_SKIP_MDS_QUERY", "true"),
        ("TPU_ACCELERATOR_TYPE", tpu.kind),
        ("TPU_CHIPS_PER_HOST_BOUNDS", shape.chips),
        ("TPU_HOST_BOUNDS", "1,1,1"),
        ("TPU_WORKER_ID", "0"),
        ("TPU_WORKER_HOSTNAMES", "localhost"),
        *(plug if shape.pluggable else ()),
    )
