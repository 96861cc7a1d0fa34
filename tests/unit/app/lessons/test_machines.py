"""Words for machines."""

from __future__ import annotations

from app.lessons.machines import topology_words


def test_simulated_devices_are_called_simulated() -> None:
    assert topology_words("cpu") == "1 CPU"
    assert topology_words("gpu:1") == "1 GPU, simulated"
    assert topology_words("gpu:4") == "4 GPUs, simulated"
