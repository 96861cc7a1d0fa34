"""The real devices of one node, and how many sessions hold each."""

from __future__ import annotations

from collections import Counter

import structlog

from runners.devices.allocation import (
    DeviceAllocation,
    DeviceMode,
    DevicesRefused,
    SimulatedDevices,
    UsableDevices,
    allocate,
    usable_devices,
)
from runners.devices.discovery import discover
from runners.wire.topology import Topology

log = structlog.get_logger()


class NoDeviceAvailable(Exception):
    """The operator wants real devices only, and there is none for this session. ``str()`` says why."""


class DevicePool:
    """Used from the node's event loop.

    Args:
        mode: whether real devices are given, and whether stand-ins may take their place.
        sharing: sessions that may hold one GPU.
        found: what there is.
    """

    def __init__(self, mode: DeviceMode, sharing: int, found: UsableDevices) -> None:
        self._mode = mode
        self._sharing = sharing
        self.found = found
        self._held: Counter[str] = Counter()

    @classmethod
    def of_this_machine(cls, mode: DeviceMode, sharing: int) -> DevicePool:
        """Look at the machine, unless everything is simulated anyway. Takes a second for each GPU, none without."""
        found = usable_devices(discover()) if mode != "simulate" else UsableDevices()
        for sentence in found.unusable:
            log.warning("accelerator cannot be used", why=sentence)
        if found:
            log.info(
                "accelerators found", gpus=[unit.name for unit in found.gpus], tpu=found.tpu.kind if found.tpu else ""
            )
        return cls(mode, sharing, found)

    def has_tpu_for(self, topology: str) -> bool:
        """Whether a session would get the real TPU now."""
        would = allocate(self._mode, Topology.parse(topology), self.found, self._held, self._sharing)
        return isinstance(would, DeviceAllocation) and would.tpu is not None

    def take(self, topology: str) -> DeviceAllocation | None:
        """Devices for one session, held until they are given back; None if it shall simulate them.

        Raises:
            NoDeviceAvailable: it must not simulate them, and there are none.
        """
        parsed = Topology.parse(topology)
        match allocate(self._mode, parsed, self.found, self._held, self._sharing):
            case DeviceAllocation() as allocation:
                self._held.update(allocation.holds)
                return allocation
            case DevicesRefused(why):
                raise NoDeviceAvailable(f"{why}, and this server does not simulate {parsed.kind.upper()}s")
            case SimulatedDevices(why) if why and self.found:
                log.info("devices are simulated", topology=topology, why=why)
        return None

    def give_back(self, allocation: DeviceAllocation) -> None:
        """A session that had them has ended."""
        self._held.subtract(allocation.holds)
