"""Counting real devices."""

from __future__ import annotations

from pathlib import Path

import pytest

from runners.devices import device_pool as module
from runners.devices.allocation import HardwareListing, UsableDevices, usable_devices
from runners.devices.device_pool import DevicePool, NoDeviceAvailable

LISTINGS = Path(__file__).with_name("listings")


def found(name: str) -> UsableDevices:
    return usable_devices(HardwareListing.from_json((LISTINGS / f"{name}.json").read_text()))


def test_a_device_that_was_given_back_is_given_again() -> None:
    devices = DevicePool("gpu", 1, found("one-a100"))

    first = devices.acquire("gpu:1")
    assert first is not None
    with pytest.raises(
        NoDeviceAvailable, match=r"^every GPU .* in use by other sessions, and this server does not simulate GPUs$"
    ):
        devices.acquire("gpu:2")
    devices.release(first)

    assert devices.acquire("gpu:1") == first


def test_two_sessions_get_two_cards_and_the_third_simulates() -> None:
    devices = DevicePool("auto", 1, found("two-small-cards"))

    allocation = [devices.acquire("gpu:1") for _ in range(3)]

    assert [real and real.nodes[0] for real in allocation] == ["nvidia1", "nvidia0", None]


def test_a_machine_without_accelerators_is_not_even_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "discover", lambda: pytest.fail("it looked"))

    assert DevicePool.of_this_machine("simulate", 1).acquire("gpu:8") is None


def test_a_tpu_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "discover", HardwareListing)

    with pytest.raises(
        NoDeviceAvailable, match=r"^no TPU was found on this machine, and this server does not simulate TPUs$"
    ):
        DevicePool.of_this_machine("tpu", 1).acquire("tpu:8")
