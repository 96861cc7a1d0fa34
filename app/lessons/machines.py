"""What a topology is in words, saying plainly what is simulated."""

from __future__ import annotations

from app.i18n import gettext, ngettext
from app.lessons.model import Lesson
from runners.protocol import Topology


def topology_words(text: str) -> str:
    """The machine in the language in use."""
    topology = Topology.parse(text)
    if topology.kind == "cpu":
        return gettext("1 CPU")
    return ngettext("{n} GPU, simulated", "{n} GPUs, simulated", topology.devices).format(n=topology.devices)


def machines_of(lesson: Lesson) -> dict[str, str]:
    """Every machine a lesson uses, in words, by topology; its own comes first."""
    topologies = dict.fromkeys([lesson.topology, *(cell.topology for cell in lesson.cells)])
    return {topology: topology_words(topology) for topology in topologies}
