"""Labels of machines, which always say whether the machine is simulated."""

from __future__ import annotations

from app.i18n import gettext, ngettext
from app.lessons.model import Lesson
from runners.wire.protocol import Topology


def topology_label(text: str, *, real: bool = False) -> str:
    """The machine in the current language; ``real`` if its accelerators are real."""
    topology = Topology.parse(text)
    if not topology.simulated:
        return gettext("1 CPU")
    words = gettext("{machine}, real") if real else gettext("{machine}, simulated")
    return words.format(machine=_simulated_label(topology))


def _simulated_label(topology: Topology) -> str:
    match topology.kind:
        case "tpu":
            words = ngettext("TPU with {n} core", "TPU with {n} cores", topology.devices)
            return words.format(n=topology.devices)
        case "workers":
            return _add_evaluator(topology, _workers_label(topology))
        case "ps":
            servers = ngettext("{n} parameter server", "{n} parameter servers", topology.servers)
            words = gettext("{workers} and {servers}")
            return _add_evaluator(
                topology,
                words.format(workers=_workers_label(topology), servers=servers.format(n=topology.servers)),
            )
        case _:
            return ngettext("{n} GPU", "{n} GPUs", topology.devices).format(n=topology.devices)


def _workers_label(topology: Topology) -> str:
    if topology.devices:
        each = ngettext("{n} GPU each", "{n} GPUs each", topology.devices).format(n=topology.devices)
        words = ngettext("{n} worker with {each}", "{n} workers with {each}", topology.workers)
        words = words.format(n=topology.workers, each=each)
    else:
        words = ngettext("{n} worker", "{n} workers", topology.workers).format(n=topology.workers)
    return gettext("{workers}, one of them chief").format(workers=words) if topology.chief else words


def _add_evaluator(topology: Topology, words: str) -> str:
    return gettext("{machine}, and an evaluator").format(machine=words) if topology.evaluator else words


def lesson_machine_labels(lesson: Lesson) -> dict[str, str]:
    """Labels of all machines that a lesson uses or offers, by topology, the lesson's own first."""
    offered = (topology for cell in lesson.cells for topology in (cell.topology, *cell.topologies))
    return {topology: topology_label(topology) for topology in dict.fromkeys([lesson.topology, *offered])}
