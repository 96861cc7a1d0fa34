"""Who gets no bare kernel."""

from __future__ import annotations

import pytest

from runners.devices.hardware import Real
from runners.leases import Leases, NotForStrangers
from runners.protocol import Keras, KernelSpec
from runners.settings import RunnerSettings
from runners.zygotes import Zygote


def no_zygote(keras: Keras, given: Real | None) -> Zygote:
    """Fail the test."""
    pytest.fail("a sandbox was asked for")


async def test_strangers_get_no_kernel_whose_time_has_no_limit() -> None:
    leases = Leases(no_zygote, lambda: True, lambda: None, RunnerSettings(strangers=True))

    with pytest.raises(NotForStrangers, match="strangers can reach this runner"):
        await leases.take(KernelSpec(topology="cpu", keras=3, key="0" * 32))
