"""What a topology is in words and in dots, saying plainly what is simulated."""

from __future__ import annotations

from dataclasses import dataclass

from app.i18n import gettext, ngettext
from app.lessons.model import Lesson
from runners.protocol import Topology


@dataclass(frozen=True, slots=True)
class MachineView:
    """A machine for a template: one dot a device."""

    topology: str
    kind: str
    devices: int
    simulated: bool
    words: str


def topology_words(text: str) -> str:
    """The machine in the language in use."""
    topology = Topology.parse(text)
    if topology.kind == "cpu":
        return gettext("1 CPU")
    return ngettext("{n} GPU, simulated", "{n} GPUs, simulated", topology.devices).format(n=topology.devices)


def machine_view(text: str) -> MachineView:
    """A machine in the language in use."""
    topology = Topology.parse(text)
    return MachineView(text, topology.kind, topology.devices, topology.simulated, topology_words(text))


def machines_of(lesson: Lesson) -> dict[str, MachineView]:
    """Every machine a lesson uses, by topology; its own comes first."""
    topologies = dict.fromkeys([lesson.topology, *(cell.topology for cell in lesson.cells)])
    return {topology: machine_view(topology) for topology in topologies}
