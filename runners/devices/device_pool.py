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
    """The operator requires real devices, and none is available for this session. ``str()`` says why."""


class DevicePool:
    """The node's devices. Use it only from the node's event loop.

    Args:
        mode: whether sessions get real devices, and whether simulated ones may replace them.
        sharing: sessions that may hold one GPU.
        found: the usable devices.
    """

    def __init__(self, mode: DeviceMode, sharing: int, found: UsableDevices) -> None:
        self._mode = mode
        self._sharing = sharing
        self.found = found
        self._held: Counter[str] = Counter()

    @classmethod
    def of_this_machine(cls, mode: DeviceMode, sharing: int) -> DevicePool:
        """Discover this machine's devices, unless all devices are simulated. Takes about a second for each GPU."""
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

    def acquire(self, topology: str) -> DeviceAllocation | None:
        """Take devices for one session, until ``give_back``; returns None if it simulates its devices.

        Raises:
            NoDeviceAvailable: it may not simulate them, and none is available.
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

    def release(self, allocation: DeviceAllocation) -> None:
        """Return the devices of a session that has ended."""
        self._held.subtract(allocation.holds)
