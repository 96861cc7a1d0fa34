"""How TensorFlow is configured for a session's real GPUs: TensorFlow itself, on simulated ones."""

from __future__ import annotations

import pytest

from runners.guest.accelerators import real_devices
from tests.factories.tensorflow_forks import Forges

CONFIGURE = """
import tensorflow as tf
from runners.guest.accelerators import real_devices

limited = real_devices.configure_gpus(SHARES)
gpus = tf.config.list_physical_devices("GPU")
print(limited == [gpus[0].name] if limited else "no limits")
for gpu in gpus:
    parts = tf.config.get_logical_device_configuration(gpu)
    print(tf.config.experimental.get_memory_growth(gpu), [part.memory_limit for part in parts or []])
"""


def test_the_environment_lists_the_granted_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_REAL", "[[2, 7000], [1, null]]")
    assert real_devices.granted_gpus() == [(2, 7_000), (1, None)]


def test_without_the_variable_no_gpu_is_granted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOCKSTEP_REAL", raising=False)
    assert real_devices.granted_gpus() is None


@pytest.mark.slow
def test_a_whole_gpu_takes_memory_as_it_needs_it(forges: Forges) -> None:
    ran = forges(3).run(CONFIGURE.replace("SHARES", "[(1, None), (1, None)]"), "gpu:2")
    assert ran.output.splitlines()[-3:] == ["no limits", "True []", "True []"], ran.output


@pytest.mark.slow
def test_a_split_one_has_limits(forges: Forges) -> None:
    ran = forges(3).run(CONFIGURE.replace("SHARES", "[(3, 5_000), (1, None)]"), "gpu:2")
    assert ran.output.splitlines()[-3:] == ["True", "None [5000, 5000, 5000]", "True []"], ran.output


@pytest.mark.slow
@pytest.mark.parametrize("found", [1, 3])
def test_devices_that_are_missing_are_no_session(forges: Forges, found: int) -> None:
    ran = forges(3).run(CONFIGURE.replace("SHARES", "[(1, None), (1, None)]"), f"gpu:{found}")
    assert ran.status
    assert f"2 GPUs were assigned to this session, but TensorFlow finds {found}" in ran.output
