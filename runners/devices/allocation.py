"""Decides which real GPUs or TPU a session gets from the devices found, requested, and held by others. Pure.

``runners.devices.discovery`` inspects a machine and writes a ``HardwareListing``. ``usable_devices`` picks from it what
TensorFlow can use. ``allocate`` gives a session some of these, or explains why its devices are simulated or refused.

A session has a GPU, or a MIG instance of one, to itself, unless the operator lets several sessions share it. If a
session asks for more GPUs than are free, the free ones are split into logical GPUs of equal size. A cluster's devices
are always simulated: all its machines are really one machine, and NCCL rejects two processes on one GPU.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal, Self

from runners.devices import tpu_vm
from runners.devices.tpu_vm import Tpu
from runners.wire.topology import Topology

DeviceMode = Literal["auto", "simulate", "gpu", "tpu"]

OLDEST_CAPABILITY = (6, 0)
"""The lowest compute capability that TensorFlow 2.21's packages are compiled for."""
_CONTEXT_MB = 512
"""GPU memory that CUDA takes for each process, in addition to its tensors."""
_LEAST_MB = 512
"""A logical GPU with less memory could not hold a useful model."""
_SHARED_NODES = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools")
"""Device nodes that every CUDA process opens."""
_CAPABILITIES = "nvidia-caps/nvidia-cap"


# --- discovered devices ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MigInstance:
    """A MIG instance, a partition of a GPU, as NVML lists it."""

    uuid: str
    name: str
    memory_mb: int
    caps: tuple[int, ...]
    """The minor numbers of the device nodes that give access to it: its GPU instance's and its compute instance's."""


@dataclass(frozen=True, slots=True)
class GpuCard:
    """A GPU as NVML lists it."""

    uuid: str
    name: str
    minor: int
    """Its device node is ``/dev/nvidia<minor>``."""
    memory_mb: int
    capability: tuple[int, int]
    mig: bool = False
    """Whether MIG is on: then only its instances can be used."""
    instances: tuple[MigInstance, ...] = ()


@dataclass(frozen=True, slots=True)
class HardwareListing:
    """The accelerators of a machine as they were read; the tests use recorded ones."""

    nodes: tuple[str, ...] = ()
    """Device nodes below ``/dev`` that belong to accelerators."""
    cards: tuple[GpuCard, ...] = ()
    tpu: str = ""
    """The accelerator type of a TPU VM, such as ``v3-8``; empty on other machines."""
    tpu_software: bool = False
    """Whether the TensorFlow installed here can drive a TPU."""
    tpu_library: str = ""
    """The path of libtpu; empty if it is missing."""
    tpu_facts: tuple[str, ...] = ()
    """Folders below ``/sys`` that describe its chips."""
    closed: tuple[str, ...] = ()
    """Those of ``nodes`` that an unprivileged user may not open."""
    pinned_mb: int | None = None
    """How much memory a process of the runner may lock; None for any amount."""
    trouble: str = ""
    """Why GPUs that appear to be present could not be listed."""

    def to_json(self) -> str:
        """Serialize for the pipe between the discovery process and the supervisor."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what ``to_json`` wrote."""
        raw = json.loads(text)
        raw["cards"] = tuple(
            GpuCard(
                **card
                | {
                    "capability": tuple(card["capability"]),
                    "instances": tuple(MigInstance(**i | {"caps": tuple(i["caps"])}) for i in card["instances"]),
                }
            )
            for card in raw["cards"]
        )
        return cls(**raw | {name: tuple(raw.get(name, ())) for name in ("nodes", "tpu_facts", "closed")})


@dataclass(frozen=True, slots=True)
class GpuUnit:
    """The unit of allocation: a GPU, or a MIG instance of one."""

    uuid: str
    name: str
    memory_mb: int
    nodes: tuple[str, ...]
    part: bool = False
    """Whether this is a MIG instance: CUDA shows a process at most one of these."""


@dataclass(frozen=True, slots=True)
class UsableDevices:
    """The devices that sessions can be given, and why others cannot be used."""

    gpus: tuple[GpuUnit, ...] = ()
    shared_nodes: tuple[str, ...] = ()
    """Device nodes needed in addition to those of each GPU."""
    tpu: Tpu | None = None
    unusable: tuple[str, ...] = ()
    """A sentence for each accelerator that cannot be used."""

    @property
    def nodes(self) -> tuple[str, ...]:
        """Every device node that a session may get."""
        own = (node for unit in self.gpus for node in unit.nodes)
        return tuple(dict.fromkeys((*own, *self.shared_nodes, *(self.tpu.nodes if self.tpu else ()))))

    @property
    def facts(self) -> tuple[str, ...]:
        """Every folder below ``/sys`` that a session may see."""
        return self.tpu.facts if self.tpu else ()

    def __bool__(self) -> bool:
        return bool(self.gpus or self.tpu)


def usable_devices(listing: HardwareListing) -> UsableDevices:
    """Pick from a listing the devices that TensorFlow can use."""
    unusable = [listing.trouble] if listing.trouble else []
    shared = tuple(node for node in _SHARED_NODES if node in listing.nodes)
    gpus: list[GpuUnit] = []
    for card in listing.cards:
        if why := _unusable(card, listing):
            unusable.append(f"{card.name} ({card.uuid}): {why}")
        elif card.mig:
            gpus += [GpuUnit(i.uuid, i.name, i.memory_mb, _nodes_of(card, i), part=True) for i in card.instances]
        else:
            gpus.append(GpuUnit(card.uuid, card.name, card.memory_mb, _nodes_of(card)))
    tpu = None
    if listing.tpu:
        why = tpu_vm.why_unusable(
            listing.tpu,
            nodes := tuple(filter(tpu_vm.is_device_node, listing.nodes)),
            software=listing.tpu_software,
            library=listing.tpu_library,
            closed=listing.closed,
            pinned_mb=listing.pinned_mb,
        )
        if why:
            unusable.append(f"TPU {listing.tpu}: {why}")
        else:
            tpu = Tpu(listing.tpu, nodes, listing.tpu_library, listing.tpu_facts)
    return UsableDevices(tuple(gpus), shared if gpus else (), tpu, tuple(unusable))


def _unusable(card: GpuCard, listing: HardwareListing) -> str:
    if card.capability < OLDEST_CAPABILITY:
        has, needs = (".".join(map(str, version)) for version in (card.capability, OLDEST_CAPABILITY))
        return f"its compute capability is {has}, and TensorFlow needs {needs}"
    if card.mig and not card.instances:
        return "it is in MIG mode and has no instances; create some with nvidia-smi mig -cgi … -C"
    missing = [node for node in (*_nodes_of(card), "nvidiactl", "nvidia-uvm") if node not in listing.nodes]
    return f"/dev/{missing[0]} is missing; as root: nvidia-modprobe -u -c=0" if missing else ""


def _nodes_of(card: GpuCard, instance: MigInstance | None = None) -> tuple[str, ...]:
    return (f"nvidia{card.minor}", *(f"{_CAPABILITIES}{minor}" for minor in (instance.caps if instance else ())))


# --- allocation ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GpuShare:
    """A session's share of one GPU."""

    unit: GpuUnit
    logical: int = 1
    """The number of logical GPUs that TensorFlow shows for it."""
    memory_mb: int | None = None
    """The memory limit of each of these; None to grow as needed up to all of it."""


@dataclass(frozen=True, slots=True)
class DeviceAllocation:
    """Real devices for one session."""

    shares: tuple[GpuShare, ...] = ()
    nodes: tuple[str, ...] = ()
    """Every device node below ``/dev`` that its sandbox gets."""
    tpu: Tpu | None = None

    @property
    def holds(self) -> tuple[str, ...]:
        """The keys under which this session's devices count as held."""
        return (self.tpu.kind,) if self.tpu else tuple(share.unit.uuid for share in self.shares)

    @property
    def words(self) -> str:
        """Describe the devices, as in ``2 logical GPUs on NVIDIA A100``."""
        if self.tpu:
            return f"TPU {self.tpu.kind}"
        return ", ".join(
            share.unit.name if share.logical == 1 else f"{share.logical} logical GPUs on {share.unit.name}"
            for share in self.shares
        )


@dataclass(frozen=True, slots=True)
class SimulatedDevices:
    """The session's devices are simulated; ``why`` is empty where real ones could not be expected."""

    why: str = ""


@dataclass(frozen=True, slots=True)
class DevicesRefused:
    """The session is refused: the operator requires real devices, and none is available."""

    why: str


AllocationDecision = DeviceAllocation | SimulatedDevices | DevicesRefused


def allocate(
    mode: DeviceMode, topology: Topology, found: UsableDevices, held: Mapping[str, int], sharing: int = 1
) -> AllocationDecision:
    """Decide what a session of this topology gets.

    Args:
        mode: the operator's setting.
        topology: the machine that the session asks for.
        found: the devices of the machine.
        held: the number of sessions that hold each GPU (by its uuid) or the TPU (by its type).
        sharing: sessions that may hold one GPU.
    """
    if mode == "simulate" or topology.kind not in ("gpu", "tpu"):
        return SimulatedDevices()
    wanted: DeviceMode = "gpu" if topology.kind == "gpu" else "tpu"
    if mode not in ("auto", wanted):
        return SimulatedDevices()
    allocation = _gpus(topology, found, held, sharing) if wanted == "gpu" else _tpu(topology, found, held)
    if isinstance(allocation, DeviceAllocation):
        return allocation
    return DevicesRefused(allocation) if mode == wanted else SimulatedDevices(allocation)


def _tpu(topology: Topology, found: UsableDevices, held: Mapping[str, int]) -> DeviceAllocation | str:
    if not found.tpu:
        return next((why for why in found.unusable if why.startswith("TPU ")), "no TPU was found on this machine")
    if topology.devices != found.tpu.cores:
        return f"the TPU of this machine is a tpu:{found.tpu.cores}, and only that topology gets it"
    if held.get(found.tpu.kind):
        return "the TPU of this machine is in use by another session"
    return DeviceAllocation(nodes=found.tpu.nodes, tpu=found.tpu)


def _gpus(topology: Topology, found: UsableDevices, held: Mapping[str, int], sharing: int) -> DeviceAllocation | str:
    """Prefer GPUs with the fewest holders: whole GPUs for several devices, the smallest sufficient one for one."""
    if not found.gpus:
        return "no GPU that TensorFlow can use was found on this machine"
    free = [unit for unit in found.gpus if held.get(unit.uuid, 0) < _sharers(unit, sharing)]
    if not free:
        return "every GPU of this machine is in use by other sessions"
    fewest = min(held.get(unit.uuid, 0) for unit in free)
    first = [unit for unit in free if held.get(unit.uuid, 0) == fewest]
    chosen = _choose(first, topology.devices)
    shares = []
    for position, unit in enumerate(chosen):
        logical = len(range(position, topology.devices, len(chosen)))
        sharers = _sharers(unit, sharing)
        each = (unit.memory_mb // sharers - _CONTEXT_MB) // logical
        if each < _LEAST_MB:
            return f"{unit.name} has too little memory for {topology.devices} GPUs: each would get {max(0, each)} MB"
        shares.append(GpuShare(unit, logical, None if sharers == logical == 1 else each))
    nodes = dict.fromkeys((*(node for unit in chosen for node in unit.nodes), *found.shared_nodes))
    return DeviceAllocation(tuple(shares), tuple(nodes))


def _choose(units: list[GpuUnit], count: int) -> list[GpuUnit]:
    whole = sorted((unit for unit in units if not unit.part), key=lambda unit: -unit.memory_mb)
    if count == 1:
        return [min(units, key=lambda unit: unit.memory_mb)]
    return whole[:count] or [max(units, key=lambda unit: unit.memory_mb)]


def _sharers(unit: GpuUnit, sharing: int) -> int:
    """Sessions that may hold a GPU: fewer than the operator allows if it has too little memory."""
    return max(1, min(sharing, unit.memory_mb // (_CONTEXT_MB + _LEAST_MB)))
