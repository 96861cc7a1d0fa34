"""Where sessions get their kernels: with real devices where the node has some for them, out of the pool otherwise."""

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
        stock: the node's real devices.
        zygote: gives the zygote of a Keras version, for a kernel with these real devices, if with any.
        warm: the versions whose zygotes start with the node.
    """

    def __init__(
        self,
        pool: KernelPool,
        stock: DevicePool,
        zygote: Callable[[KerasVersion, DeviceAllocation | None], ZygoteClient],
        warm: tuple[KerasVersion, ...] = (3,),
    ) -> None:
        self._pool = pool
        self._stock = stock
        self._zygote = zygote
        self._warm = warm

    def is_cold(self, topology: str, keras: KerasVersion) -> bool:
        """Whether a kernel has to wait for an import of TensorFlow that somebody had to ask for."""
        if self._stock.has_tpu_for(topology):
            return True
        zygote = self._zygote(keras, None)
        return keras not in self._warm and not zygote.ready and not zygote.trouble

    async def take(self, topology: str, keras: KerasVersion) -> Kernel:
        """A kernel that answers. Its devices, if it has real ones, are free again once it is closed.

        Raises:
            NoDeviceAvailable: it needs real devices, and there are none for it.
            ZygoteUnavailable, KernelNotReady: as ``Kernel.create`` does.
        """
        allocation = self._stock.take(topology)
        if allocation is None:
            return await self._pool.take(topology, keras)
        try:
            kernel = await Kernel.create(self._zygote(keras, allocation), topology, keras, allocation)
        except BaseException:
            self._stock.give_back(allocation)
            raise
        kernel.when_closed = lambda: self._stock.give_back(allocation)
        return kernel
