"""Gives sessions their kernels: with real devices if the node has some for them, otherwise from the pool."""

from __future__ import annotations

from collections.abc import Callable

from runners.devices.allocation import DeviceAllocation
from runners.devices.device_pool import DevicePool
from runners.kernels.kernel_pool import Kernel, KernelPool
from runners.kernels.zygote_client import ZygoteClient
from runners.wire.protocol import KerasVersion


class KernelProvider:
    """The kernels of one node. Used from its event loop.

    Args:
        pool: kernels without real devices.
        devices: the node's real devices.
        zygote: gives the zygote for a Keras version and the kernel's real devices, if any.
        warm: the Keras versions whose zygotes start with the node.
    """

    def __init__(
        self,
        pool: KernelPool,
        devices: DevicePool,
        zygote: Callable[[KerasVersion, DeviceAllocation | None], ZygoteClient],
        warm: tuple[KerasVersion, ...] = (3,),
    ) -> None:
        self._pool = pool
        self._devices = devices
        self._zygote = zygote
        self._warm = warm

    def is_cold(self, topology: str, keras: KerasVersion) -> bool:
        """Whether a kernel has to wait for an import of TensorFlow, which its request triggers."""
        if self._devices.has_tpu_for(topology):
            return True
        zygote = self._zygote(keras, None)
        return keras not in self._warm and not zygote.ready and not zygote.trouble

    async def take(self, topology: str, keras: KerasVersion) -> Kernel:
        """Take a kernel that responds. Its real devices, if any, are free again once it is closed.

        Raises:
            NoDeviceAvailable: it needs real devices, and none is available.
            ZygoteUnavailable, KernelNotReady: as in ``Kernel.create``.
        """
        allocation = self._devices.acquire(topology)
        if allocation is None:
            return await self._pool.take(topology, keras)
        try:
            kernel = await Kernel.create(self._zygote(keras, allocation), topology, keras, allocation)
        except BaseException:
            self._devices.release(allocation)
            raise
        kernel.when_closed = lambda: self._devices.release(allocation)
        return kernel
