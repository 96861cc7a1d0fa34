"""When bare kernels are refused."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from runners.config.settings import RunnerSettings
from runners.devices.allocation import DeviceAllocation
from runners.kernels.zygote_client import ZygoteClient
from runners.sandbox.handle import Sandbox
from runners.supervisor.leases import LeaseManager, LeasesForbidden, _Lease
from runners.wire.protocol import KerasVersion, LeaseRequest


def no_zygote(keras: KerasVersion, allocation: DeviceAllocation | None) -> ZygoteClient:
    """Fail the test."""
    pytest.fail("a sandbox was asked for")


async def test_untrusted_users_get_no_kernel_whose_time_has_no_limit() -> None:
    leases = LeaseManager(no_zygote, lambda: True, lambda: None, RunnerSettings(untrusted_users=True))

    with pytest.raises(LeasesForbidden, match="untrusted users can reach this runner"):
        await leases.take(LeaseRequest(topology="cpu", keras=3, key="0" * 32))


async def test_no_kernel_is_leased_once_untrusted_users_can_reach_the_runner() -> None:
    leases = LeaseManager(no_zygote, lambda: True, lambda: None, RunnerSettings())
    leases.mark_users_untrusted()

    with pytest.raises(LeasesForbidden, match="untrusted users can reach this runner"):
        await leases.take(LeaseRequest(topology="cpu", keras=3, key="0" * 32))


class SlowSandbox:
    """A sandbox that takes a while to end."""

    destroyed = False

    async def destroy(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)
        self.destroyed = True


async def test_a_supervisor_that_ends_waits_for_the_kernels_that_it_is_ending() -> None:
    left: list[bool] = []
    leases = LeaseManager(no_zygote, lambda: True, lambda: left.append(True), RunnerSettings())
    sandbox = SlowSandbox()
    exited = asyncio.get_running_loop().create_future()
    request = LeaseRequest(topology="cpu", keras=3, key="0" * 32)
    leases._leases["a"] = _Lease(cast(Sandbox, sandbox), request, None, exited)
    leases.mark_users_untrusted()

    await leases.close()

    assert sandbox.destroyed
    assert (left, len(leases)) == ([True], 0)
