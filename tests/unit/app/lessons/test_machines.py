"""Words and dots for machines."""

from __future__ import annotations

from app.lessons.machines import machine_view, topology_words


def test_simulated_devices_are_called_simulated() -> None:
    assert topology_words("cpu") == "1 CPU"
    assert topology_words("gpu:1") == "1 GPU, simulated"
    assert topology_words("gpu:4") == "4 GPUs, simulated"


def test_a_machine_has_a_dot_for_each_device() -> None:
    assert (machine_view("cpu").devices, machine_view("cpu").simulated) == (1, False)
    assert (machine_view("gpu:4").devices, machine_view("gpu:4").simulated) == (4, True)
