"""A machine as a small drawing: one mark a device, in its replica's colour, framed by its worker. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from runners.wire.protocol import Topology

DeviceShape = Literal["cpu", "gpu", "tpu", "server", "helper"]
NEUTRAL_COLOR = "r-ink"
"""The class of what takes part without training."""
_COLORS = 8


@dataclass(frozen=True, slots=True)
class DeviceIcon:
    """One device, or one process that has none: its shape, and the class that gives it its colour."""

    shape: DeviceShape
    colour: str


@dataclass(frozen=True, slots=True)
class HostIcon:
    """Marks that belong to one process; ``framed`` where there are several."""

    marks: tuple[DeviceIcon, ...]
    framed: bool = False


def topology_icon(text: str) -> tuple[HostIcon, ...]:
    """The drawing of a topology."""
    topology = Topology.parse(text)
    if not topology.cluster:
        shape: DeviceShape = "cpu" if topology.kind == "cpu" else "tpu" if topology.kind == "tpu" else "gpu"
        return (HostIcon(_replica_icons(shape, 0, topology.replicas)),)
    return tuple(_host_icon(topology, task.lane) for task in topology.tasks)


def _host_icon(topology: Topology, lane: str) -> HostIcon:
    colour = lane_color(topology, lane)
    if colour == NEUTRAL_COLOR:
        return HostIcon((DeviceIcon("server" if lane.startswith("ps ") else "helper", NEUTRAL_COLOR),))
    shape: DeviceShape = "gpu" if topology.devices else "cpu"
    return HostIcon(_replica_icons(shape, int(colour[1:]), max(1, topology.devices)), framed=True)


def _replica_icons(shape: DeviceShape, first: int, count: int) -> tuple[DeviceIcon, ...]:
    return tuple(DeviceIcon(shape, f"r{(first + i) % _COLORS}") for i in range(count))


def lane_color(topology: Topology, lane: str) -> str:
    """The class of a lane's colour: a worker has that of its first replica. The page's script has the same rule."""
    role, _, number = lane.rpartition(" · ")[2].partition(" ")
    chief_trains = topology.kind == "workers" and topology.chief
    if lane == "chief" and chief_trains:
        return "r0"
    if role not in ("worker", "replica") or not number.isdecimal():
        return NEUTRAL_COLOR
    if role == "replica":
        return f"r{int(number) % _COLORS}"
    return f"r{(int(number) + chief_trains) * max(1, topology.devices) % _COLORS}"
