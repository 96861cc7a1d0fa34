"""A machine as a small drawing: one mark a device, in its replica's colour, framed by its worker. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from runners.protocol import Topology

Shape = Literal["cpu", "gpu", "tpu", "server", "helper"]
INK = "r-ink"
"""The class of what takes part without training."""
_COLOURS = 8


@dataclass(frozen=True, slots=True)
class Mark:
    """One device, or one process that has none: its shape, and the class that gives it its colour."""

    shape: Shape
    colour: str


@dataclass(frozen=True, slots=True)
class Host:
    """Marks that belong to one process; ``framed`` where there are several."""

    marks: tuple[Mark, ...]
    framed: bool = False


def drawing(text: str) -> tuple[Host, ...]:
    """The drawing of a topology."""
    topology = Topology.parse(text)
    if not topology.cluster:
        shape: Shape = "cpu" if topology.kind == "cpu" else "tpu" if topology.kind == "tpu" else "gpu"
        return (Host(_replicas(shape, 0, topology.replicas)),)
    return tuple(_host(topology, task.lane) for task in topology.tasks)


def _host(topology: Topology, lane: str) -> Host:
    colour = lane_colour(topology, lane)
    if colour == INK:
        return Host((Mark("server" if lane.startswith("ps ") else "helper", INK),))
    shape: Shape = "gpu" if topology.devices else "cpu"
    return Host(_replicas(shape, int(colour[1:]), max(1, topology.devices)), framed=True)


def _replicas(shape: Shape, first: int, count: int) -> tuple[Mark, ...]:
    return tuple(Mark(shape, f"r{(first + i) % _COLOURS}") for i in range(count))


def lane_colour(topology: Topology, lane: str) -> str:
    """The class of a lane's colour: a worker has that of its first replica. The page's script has the same rule."""
    role, _, number = lane.rpartition(" · ")[2].partition(" ")
    chief_trains = topology.kind == "workers" and topology.chief
    if lane == "chief" and chief_trains:
        return "r0"
    if role not in ("worker", "replica") or not number.isdecimal():
        return INK
    if role == "replica":
        return f"r{int(number) % _COLOURS}"
    return f"r{(int(number) + chief_trains) * max(1, topology.devices) % _COLOURS}"
