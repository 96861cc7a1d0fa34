"""The icon of a machine: one mark per device, in the color of its replica, framed by its worker. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from runners.wire.protocol import Topology

DeviceShape = Literal["cpu", "gpu", "tpu", "server", "helper"]
NEUTRAL_COLOR = "r-ink"
"""The CSS class of processes that do not train."""
_COLORS = 8


@dataclass(frozen=True, slots=True)
class DeviceIcon:
    """The mark of a device, or of a process without devices: its shape and color class."""

    shape: DeviceShape
    color: str


@dataclass(frozen=True, slots=True)
class HostIcon:
    """The marks of one process; ``framed`` if there are several processes."""

    marks: tuple[DeviceIcon, ...]
    framed: bool = False


def topology_icon(text: str) -> tuple[HostIcon, ...]:
    topology = Topology.parse(text)
    if not topology.cluster:
        shape: DeviceShape = "cpu" if topology.kind == "cpu" else "tpu" if topology.kind == "tpu" else "gpu"
        return (HostIcon(_replica_icons(shape, 0, topology.replicas)),)
    return tuple(_host_icon(topology, task.lane) for task in topology.tasks)


def _host_icon(topology: Topology, lane: str) -> HostIcon:
    color = lane_color(topology, lane)
    if color == NEUTRAL_COLOR:
        return HostIcon((DeviceIcon("server" if lane.startswith("ps ") else "helper", NEUTRAL_COLOR),))
    shape: DeviceShape = "gpu" if topology.devices else "cpu"
    return HostIcon(_replica_icons(shape, int(color[1:]), max(1, topology.devices)), framed=True)


def _replica_icons(shape: DeviceShape, first: int, count: int) -> tuple[DeviceIcon, ...]:
    return tuple(DeviceIcon(shape, f"r{(first + i) % _COLORS}") for i in range(count))


def lane_color(topology: Topology, lane: str) -> str:
    """The color class of a lane: a worker has the color of its first replica. The page's script has the same rule."""
    role, _, number = lane.rpartition(" · ")[2].partition(" ")
    chief_trains = topology.kind == "workers" and topology.chief
    if lane == "chief" and chief_trains:
        return "r0"
    if role not in ("worker", "replica") or not number.isdecimal():
        return NEUTRAL_COLOR
    if role == "replica":
        return f"r{int(number) % _COLORS}"
    return f"r{(int(number) + chief_trains) * max(1, topology.devices) % _COLORS}"
