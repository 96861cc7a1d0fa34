"""The kernels that Lockstep offers to Jupyter, and their names. Pure: the web application shows them, too."""

from __future__ import annotations

import re
from dataclasses import dataclass

from runners.wire.topology import Topology


@dataclass(frozen=True, slots=True)
class JupyterKernel:
    """A kernel that sees one machine; ``keras`` is 2 or 3."""

    topology: Topology
    keras: int = 3

    @property
    def name(self) -> str:
        """The kernel's name in a notebook: ``lockstep-gpu-4``, ``lockstep-cpu-keras-2``."""
        machine = re.split(r"[:+]", str(self.topology))
        return "-".join(["lockstep", *machine, *(["keras-2"] if self.keras == 2 else [])])

    @property
    def title(self) -> str:
        """The kernel's name for people."""
        return f"Lockstep, {_words(self.topology)}" + (", Keras 2" if self.keras == 2 else "")

    @property
    def install_command(self) -> str:
        """The command that installs only this kernel."""
        keras = " --keras 2" if self.keras == 2 else ""
        return f"lockstep kernelspec install --topology {self.topology}{keras}"


DEFAULT_KERNELS = (
    *(
        JupyterKernel(Topology.parse(text))
        for text in (
            "gpu:4",
            "gpu:2",
            "gpu:8",
            "cpu",
            "tpu:8",
            "workers:2",
            "workers:3",
            "workers:2xgpu:2",
            "ps:2+1",
            "ps:2+2",
        )
    ),
    JupyterKernel(Topology("gpu", 4), 2),
)
"""The kernels that ``lockstep kernelspec install`` installs by default, including the machine of every lesson."""


def _words(topology: Topology) -> str:
    each = _count(topology.devices, "GPU")
    match topology.kind:
        case "cpu":
            return "CPU"
        case "gpu":
            return f"{_count(topology.devices, 'simulated GPU')}"
        case "tpu":
            return f"simulated TPU with {_count(topology.devices, 'core')}"
        case "workers":
            return _count(topology.workers, "simulated worker") + (f" with {each} each" if topology.devices else "")
        case "ps":
            servers = _count(topology.servers, "parameter server")
            return f"{_count(topology.workers, 'simulated worker')} and {servers}"


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'s' if number > 1 else ''}"
