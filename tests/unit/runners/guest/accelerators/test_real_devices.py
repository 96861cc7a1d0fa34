"""How TensorFlow is configured for a session's real GPUs, with a fake TensorFlow that records calls."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from runners.guest.accelerators import real_devices
from runners.guest.accelerators.real_devices import GrantedDevicesMissing


class TensorFlow:
    """The part of TensorFlow that is called."""

    def __init__(self, gpus: int) -> None:
        self.gpus = [SimpleNamespace(name=f"/physical_device:GPU:{i}") for i in range(gpus)]
        self.growing: list[str] = []
        self.split: dict[str, list[int]] = {}
        self.module = ModuleType("tensorflow")
        vars(self.module)["config"] = SimpleNamespace(
            list_physical_devices=lambda kind: self.gpus,
            set_memory_growth=lambda gpu, enable: self.growing.append(gpu.name),
            set_logical_device_configuration=self._split,
            LogicalDeviceConfiguration=lambda memory_limit: memory_limit,
        )

    def _split(self, gpu: Any, configurations: list[int]) -> None:
        self.split[gpu.name] = configurations


@pytest.fixture
def tensorflow(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], TensorFlow]:
    def make(gpus: int) -> TensorFlow:
        made = TensorFlow(gpus)
        monkeypatch.setitem(sys.modules, "tensorflow", made.module)
        return made

    return make


def test_the_environment_lists_the_granted_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_REAL", "[[2, 7000], [1, null]]")
    assert real_devices.granted_gpus() == [(2, 7_000), (1, None)]


def test_without_the_variable_no_gpu_is_granted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOCKSTEP_REAL", raising=False)
    assert real_devices.granted_gpus() is None


def test_a_whole_gpu_takes_memory_as_it_needs_it(tensorflow: Callable[[int], TensorFlow]) -> None:
    tf = tensorflow(2)

    real_devices.configure_gpus([(1, None), (1, None)])

    assert tf.growing == [gpu.name for gpu in tf.gpus]
    assert tf.split == {}


def test_a_split_one_has_limits(tensorflow: Callable[[int], TensorFlow]) -> None:
    tf = tensorflow(2)
    first, second = tf.gpus

    limited = real_devices.configure_gpus([(3, 5_000), (1, None)])

    assert limited == [first.name]
    assert tf.split == {first.name: [5_000] * 3}
    assert tf.growing == [second.name]


@pytest.mark.parametrize("found", [0, 1, 3])
def test_devices_that_are_missing_are_no_session(tensorflow: Callable[[int], TensorFlow], found: int) -> None:
    tensorflow(found)
    with pytest.raises(
        GrantedDevicesMissing, match=f"2 GPUs were assigned to this session, but TensorFlow finds {found}"
    ):
        real_devices.configure_gpus([(1, None), (1, None)])
