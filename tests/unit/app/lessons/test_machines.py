"""Words for machines."""

from __future__ import annotations

from app.lessons.machines import machines_of, topology_words
from tests.factories.lesson import CELL, HEADER, rendered


def test_simulated_devices_are_called_simulated() -> None:
    assert topology_words("cpu") == "1 CPU"
    assert topology_words("gpu:1") == "1 GPU, simulated"
    assert topology_words("gpu:4") == "4 GPUs, simulated"
    assert topology_words("tpu:8") == "TPU with 8 cores, simulated"


def test_real_devices_are_called_real() -> None:
    assert topology_words("gpu:2", real=True) == "2 GPUs, real"
    assert topology_words("cpu", real=True) == "1 CPU"


def test_the_machines_of_a_cluster_are_counted() -> None:
    assert topology_words("workers:1") == "1 worker, simulated"
    assert topology_words("workers:2xgpu:2") == "2 workers with 2 GPUs each, simulated"
    assert topology_words("workers:3+chief+evaluator") == ("3 workers, one of them chief, and an evaluator, simulated")
    assert topology_words("ps:2+1") == "2 workers and 1 parameter server, simulated"
    assert topology_words("ps:1+2+evaluator") == "1 worker and 2 parameter servers, and an evaluator, simulated"


def test_a_lessons_machines_are_all_that_its_cells_may_run_on() -> None:
    own = "```{code-cell} python\n:name: own\n:topology: cpu\n\nx\n```\n"
    lesson = rendered(CELL + own, header=HEADER + "topologies: [gpu:2, gpu:4]\n")

    assert list(machines_of(lesson)) == ["gpu:4", "gpu:2", "cpu"]
