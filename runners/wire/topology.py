"""The machine that a session sees, as a short string: ``cpu``, ``gpu:4``, ``tpu:8``, ``workers:2xgpu:2``, ``ps:2+1``.

Pure: no TensorFlow here, so the web application may describe a topology too.

========================  ==========================================================================================
``cpu``                   one machine with one CPU
``gpu:N``                 one machine with N GPUs
``tpu:N``                 one TPU with N cores
``workers:N``             N machines with a CPU each, all of which run the cell
``workers:NxG``           the same, but each is a machine G, ``gpu:1`` to ``gpu:8``, as in ``workers:2xgpu:2``
``ps:W+P``                W workers, P parameter servers and a coordinator, which alone runs the cell
``…+chief``               a cluster of workers, the first of which is the chief
``…+evaluator``           a cluster with one more machine, which evaluates
========================  ==========================================================================================
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

MAX_DEVICES = 8
"""Replicas of one machine or of a whole cluster."""
MAX_TASKS = 8
"""Processes of a cluster."""
POSSIBLE_TOPOLOGIES = (
    f"cpu, gpu:1 … gpu:{MAX_DEVICES}, tpu:1 … tpu:{MAX_DEVICES}, workers:1 … workers:{MAX_TASKS}, "
    f"workers:NxG with at most {MAX_DEVICES} GPUs together as in workers:2xgpu:2, "
    f"ps:W+P with W workers, P parameter servers and at most {MAX_TASKS} processes together as in ps:2+1; "
    "a cluster may end in +chief (workers only) and +evaluator"
)
TOPOLOGY_FORMS = (
    f"cpu, gpu:N, tpu:N, workers:N, workers:2xgpu:2 or ps:W+P, with at most {MAX_DEVICES} devices or processes"
)
"""A shorter version for errors."""

_N = "([1-9][0-9]{0,8})"
_ONE_MACHINE = re.compile(rf"(gpu|tpu):{_N}", re.ASCII)
_WORKERS = re.compile(rf"workers:{_N}(?:xgpu:{_N})?(\+chief)?(\+evaluator)?", re.ASCII)
_SERVERS = re.compile(rf"ps:{_N}\+{_N}(\+evaluator)?", re.ASCII)

TopologyKind = Literal["cpu", "gpu", "tpu", "workers", "ps"]
TaskRole = Literal["coordinator", "chief", "worker", "ps", "evaluator"]


class UnknownTopology(ValueError):
    """The text does not name a supported topology. ``str()`` lists the possible ones."""

    def __init__(self, text: str, what: str = "") -> None:
        super().__init__(f"{what or f'unknown topology {text[:40]!r}'}; possible: {POSSIBLE_TOPOLOGIES}")
        self.text = text


class TooLargeTopology(UnknownTopology):
    """The topology has more devices or processes than Lockstep supports. ``str()`` states the limit."""

    def __init__(self, text: str, bound: str) -> None:
        super().__init__(text, f"topology {text[:40]!r} is too large: {bound}")
        self.bound = bound


@dataclass(frozen=True, slots=True)
class Task:
    """One process of a cluster: its role, and its index among processes with the same role."""

    role: TaskRole
    index: int = 0

    @property
    def lane(self) -> str:
        """Its user-facing name: ``worker 1``, ``coordinator``."""
        return f"{self.role} {self.index}" if self.role in ("worker", "ps") else self.role

    @property
    def job(self) -> str:
        """The name of its role in ``TF_CONFIG`` and device names, where TensorFlow calls a coordinator ``chief``."""
        return "chief" if self.role == "coordinator" else self.role


@dataclass(frozen=True, slots=True)
class Topology:
    """A parsed topology.

    Attributes:
        kind: its kind.
        devices: accelerators of each machine (TPU cores or GPUs); 0 if there are only CPUs.
        workers: machines that train, including the chief of ``+chief``; 1 if there is no cluster.
        servers: parameter servers.
        chief: whether the first worker is the chief.
        evaluator: whether there is an evaluator.
    """

    kind: TopologyKind
    devices: int = 0
    workers: int = 1
    servers: int = 0
    chief: bool = False
    evaluator: bool = False

    @classmethod
    def parse(cls, text: str) -> Topology:
        """Parse a topology; see this module's table.

        Raises:
            TooLargeTopology: it has too many devices or processes.
            UnknownTopology: it is invalid in any other way.
        """
        topology = cls._read(text)
        if topology is None:
            raise UnknownTopology(text)
        if bound := topology._exceeds():
            raise TooLargeTopology(text, bound)
        return topology

    @classmethod
    def _read(cls, text: str) -> Topology | None:
        if text == "cpu":
            return cls("cpu")
        if match := _ONE_MACHINE.fullmatch(text):
            return cls("gpu" if match[1] == "gpu" else "tpu", devices=int(match[2]))
        if match := _WORKERS.fullmatch(text):
            each = int(match[2] or 0)
            return cls("workers", each, int(match[1]), chief=bool(match[3]), evaluator=bool(match[4]))
        if match := _SERVERS.fullmatch(text):
            return cls("ps", workers=int(match[1]), servers=int(match[2]), evaluator=bool(match[3]))
        return None

    def _exceeds(self) -> str:
        """Describe the limit that it exceeds; empty if none. Does not create tasks: there may be millions."""
        if not self.cluster:
            return f"{self.kind}:1 to {self.kind}:{MAX_DEVICES}" if self.devices > MAX_DEVICES else ""
        coordinators = int(self.kind == "ps")
        processes = coordinators + self.workers + self.servers + self.evaluator
        if processes > MAX_TASKS:
            counted = f"{processes} processes, including the coordinator" if coordinators else f"{processes} processes"
            return f"{counted}, and the limit is {MAX_TASKS}"
        if self.replicas > MAX_DEVICES:
            return f"{self.replicas} GPUs together, and the limit is {MAX_DEVICES}"
        return ""

    @property
    def cluster(self) -> bool:
        """Whether it is a cluster: several processes, or one that is set up as a cluster."""
        return self.kind in ("workers", "ps")

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The processes of a cluster, in the order of their lanes; empty if there is no cluster.

        The first is the learner's kernel itself: the chief or worker 0, or with parameter servers the coordinator.
        """
        if not self.cluster:
            return ()
        last = (Task("evaluator"),) if self.evaluator else ()
        if self.kind == "ps":
            workers = tuple(Task("worker", i) for i in range(self.workers))
            return (Task("coordinator"), *workers, *(Task("ps", i) for i in range(self.servers)), *last)
        named = self.workers - self.chief
        return (*((Task("chief"),) if self.chief else ()), *(Task("worker", i) for i in range(named)), *last)

    @property
    def replicas(self) -> int:
        """The number of replicas that its strategy keeps in sync, or, with parameter servers, of workers."""
        return self.workers * max(1, self.devices)

    @property
    def simulated(self) -> bool:
        """Whether it is simulated: by logical CPU devices, or by processes in place of machines."""
        return self.kind != "cpu"

    def __str__(self) -> str:
        roles = "+chief" * self.chief + "+evaluator" * self.evaluator
        match self.kind:
            case "cpu":
                return "cpu"
            case "workers":
                each = f"xgpu:{self.devices}" if self.devices else ""
                return f"workers:{self.workers}{each}{roles}"
            case "ps":
                return f"ps:{self.workers}+{self.servers}{roles}"
            case _:
                return f"{self.kind}:{self.devices}"
