"""A single-machine TPU VM: its types, whether a session can use it, and the environment for libtpu. Pure.

libtpu, the library that drives a TPU, asks the cloud's metadata server which machine it is on. A session has no
network, so environment variables tell it, the same ones that a Kubernetes pod gets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TpuType:
    """One accelerator type."""

    cores: int
    """The number of cores that TensorFlow counts."""
    chips: str
    """The arrangement of the chips, such as ``2,2,1``."""
    pluggable: bool = False
    """Whether TensorFlow loads libtpu as a plug-in; support for older types is built in."""


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
"""By accelerator type."""

_PINNED_MB = 1024
"""The least host memory, in MB, that a driver behind ``/dev/vfio`` locks."""


@dataclass(frozen=True, slots=True)
class Tpu:
    """A TPU that a session can use."""

    kind: str
    """Its accelerator type, a key of ``TPU_TYPES``."""
    nodes: tuple[str, ...]
    """Device nodes below ``/dev``."""
    library: str
    """The path of libtpu."""
    facts: tuple[str, ...] = ()
    """Folders below ``/sys`` in which libtpu finds the chips."""

    @property
    def cores(self) -> int:
        """The number of cores that TensorFlow counts."""
        return TPU_TYPES[self.kind].cores


def is_device_node(name: str) -> bool:
    """Whether a device node below ``/dev`` is a TPU's."""
    return name.startswith(("accel", "vfio/"))


def why_unusable(
    kind: str, nodes: tuple[str, ...], *, software: bool, library: str, closed: tuple[str, ...], pinned_mb: int | None
) -> str:
    """Explain why sessions cannot use this machine's TPU, and what to do; empty if they can.

    Args:
        kind: its accelerator type.
        nodes: its device nodes.
        software: whether the TensorFlow installed here can drive a TPU.
        library: the path of libtpu; empty if it is missing.
        closed: device nodes that an unprivileged user may not open.
        pinned_mb: how much memory a process here may lock; None for any amount.
    """
    if kind not in TPU_TYPES:
        return "Lockstep supports only TPU VMs that are a single whole machine"
    if not software:
        return "the installed TensorFlow cannot drive it; install tensorflow-tpu instead"
    if not library:
        return "libtpu is missing; install it with: pip install libtpu"
    if shut := [node for node in nodes if node in closed]:
        return f"sessions cannot open /dev/{shut[0]}; as root: chmod a+rw {' '.join(f'/dev/{node}' for node in shut)}"
    if pinned_mb is not None and pinned_mb < _PINNED_MB and any(node.startswith("vfio/") for node in nodes):
        return (
            f"its driver locks memory, and the runner may lock only {pinned_mb} MB: "
            "start it with LimitMEMLOCK=infinity under systemd, --ulimit memlock=-1 under Docker"
        )
    return ""


def environment(tpu: Tpu) -> tuple[tuple[str, str], ...]:
    """The environment variables that tell libtpu and TensorFlow about it."""
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
