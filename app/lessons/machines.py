"""What a topology is in words, saying plainly what is simulated."""

from __future__ import annotations

from app.i18n import gettext, ngettext
from app.lessons.model import Lesson
from runners.protocol import Topology


def topology_words(text: str) -> str:
    """The machine in the language in use."""
    topology = Topology.parse(text)
    match topology.kind:
        case "cpu":
            return gettext("1 CPU")
        case "gpu":
            return ngettext("{n} GPU, simulated", "{n} GPUs, simulated", topology.devices).format(n=topology.devices)
        case "tpu":
            words = ngettext("TPU with {n} core, simulated", "TPU with {n} cores, simulated", topology.devices)
            return words.format(n=topology.devices)
        case "workers":
            return _workers_words(topology)
        case "ps":
            workers = ngettext("{n} worker", "{n} workers", topology.workers).format(n=topology.workers)
            servers = ngettext("{n} parameter server", "{n} parameter servers", topology.servers)
            words = gettext("{workers} and {servers}, simulated")
            return words.format(workers=workers, servers=servers.format(n=topology.servers))


def _workers_words(topology: Topology) -> str:
    if not topology.devices:
        return ngettext("{n} worker, simulated", "{n} workers, simulated", topology.workers).format(n=topology.workers)
    each = ngettext("{n} GPU each", "{n} GPUs each", topology.devices).format(n=topology.devices)
    words = ngettext("{n} worker with {each}, simulated", "{n} workers with {each}, simulated", topology.workers)
    return words.format(n=topology.workers, each=each)


def machines_of(lesson: Lesson) -> dict[str, str]:
    """Every machine a lesson uses, in words, by topology; its own comes first."""
    topologies = dict.fromkeys([lesson.topology, *(cell.topology for cell in lesson.cells)])
    return {topology: topology_words(topology) for topology in topologies}
