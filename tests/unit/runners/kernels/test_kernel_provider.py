"""Which kernels sessions get, and when real devices are free again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runners.devices.allocation import DeviceAllocation, HardwareListing, usable_devices
from runners.devices.device_pool import DevicePool, NoDeviceAvailable
from runners.kernels import kernel_provider as module
from runners.kernels.kernel_provider import KernelProvider
from runners.kernels.zygote_client import ZygoteUnavailable

LISTINGS = Path(__file__).parents[1] / "devices" / "listings"
A100 = usable_devices(HardwareListing.from_json((LISTINGS / "one-a100.json").read_text()))


class Pool:
    """A pool that is asked only for simulated devices."""

    async def take(self, topology: str, keras: int) -> str:
        """A kernel."""
        return f"{topology} from the pool"


class Zygote:
    """A zygote that is, or is not, ready yet."""

    ready = False
    trouble = None


class Kernel:
    """A kernel with real devices."""

    when_closed: Any = None
    fails = False

    def __init__(self, allocation: DeviceAllocation) -> None:
        self.allocation = allocation

    @classmethod
    async def create(cls, zygote: object, topology: str, keras: int, allocation: DeviceAllocation) -> Kernel:
        """Create one, or fail."""
        if cls.fails:
            raise ZygoteUnavailable("no room")
        return cls(allocation)


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch) -> DevicePool:
    monkeypatch.setattr(module, "Kernel", Kernel)
    return DevicePool("gpu", 1, A100)


def provider_of(devices: DevicePool, **more: Any) -> Any:
    stand_ins: Any = (Pool(), devices, lambda *_: Zygote())
    return KernelProvider(*stand_ins, **more)


async def test_a_request_for_gpus_gets_a_kernel_with_real_ones_until_it_is_closed(devices: DevicePool) -> None:
    provider = provider_of(devices)

    kernel = await provider.take("gpu:2", 3)
    assert kernel.allocation.words == "2 logical GPUs on NVIDIA A100-SXM4-40GB"
    with pytest.raises(NoDeviceAvailable):
        await provider.take("gpu:1", 3)
    kernel.when_closed()

    assert (await provider.take("gpu:1", 3)).allocation


async def test_a_kernel_that_cannot_be_made_holds_nothing(devices: DevicePool, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = provider_of(devices)
    monkeypatch.setattr(Kernel, "fails", True)
    with pytest.raises(ZygoteUnavailable):
        await provider.take("gpu:1", 3)
    monkeypatch.setattr(Kernel, "fails", False)

    assert (await provider.take("gpu:1", 3)).allocation


@pytest.mark.parametrize("topology", ["cpu", "tpu:8", "workers:2xgpu:2"])
async def test_the_rest_comes_out_of_the_pool(devices: DevicePool, topology: str) -> None:
    assert await provider_of(devices).take(topology, 3) == f"{topology} from the pool"


def test_only_a_keras_that_nobody_warmed_is_cold_and_only_until_it_is_there(
    devices: DevicePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = provider_of(devices, warm=(3,))
    assert (provider.is_cold("cpu", 3), provider.is_cold("cpu", 2)) == (False, True)

    monkeypatch.setattr(Zygote, "ready", True)
    assert not provider.is_cold("cpu", 2)


async def test_a_session_with_the_tpu_gets_a_kernel_that_imports_tensorflow_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[int, bool]] = []

    def zygote(keras: int, allocation: DeviceAllocation | None) -> Any:
        asked.append((keras, bool(allocation and allocation.tpu)))
        return Zygote()

    monkeypatch.setattr(module, "Kernel", Kernel)
    monkeypatch.setattr(Zygote, "ready", True)
    devices = DevicePool("auto", 1, usable_devices(HardwareListing.from_json((LISTINGS / "tpu-v3-8.json").read_text())))
    pool: Any = Pool()
    provider = KernelProvider(pool, devices, zygote)

    assert provider.is_cold("tpu:8", 3)
    assert not provider.is_cold("tpu:4", 3)
    kernel: Any = await provider.take("tpu:8", 3)
    assert kernel.allocation.words == "TPU v3-8"
    assert asked[-1] == (3, True)
    assert not provider.is_cold("tpu:8", 3), "it is in use, so the next one is simulated"
    pooled: Any = await provider.take("tpu:8", 3)
    assert pooled == "tpu:8 from the pool"
