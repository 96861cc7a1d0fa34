"""Names of machines."""

from __future__ import annotations

from app.lessons.machine_labels import lesson_machine_labels, topology_label
from tests.factories.lesson_source import CELL, FRONT_MATTER, render_body


def test_simulated_devices_are_called_simulated() -> None:
    assert topology_label("cpu") == "1 CPU"
    assert topology_label("gpu:1") == "1 GPU, simulated"
    assert topology_label("gpu:4") == "4 GPUs, simulated"
    assert topology_label("tpu:8") == "TPU with 8 cores, simulated"


def test_real_devices_are_called_real() -> None:
    assert topology_label("gpu:2", real=True) == "2 GPUs, real"
    assert topology_label("cpu", real=True) == "1 CPU"


def test_the_machines_of_a_cluster_are_counted() -> None:
    assert topology_label("workers:1") == "1 worker, simulated"
    assert topology_label("workers:2xgpu:2") == "2 workers with 2 GPUs each, simulated"
    assert topology_label("workers:3+chief+evaluator") == ("3 workers, one of them chief, and an evaluator, simulated")
    assert topology_label("ps:2+1") == "2 workers and 1 parameter server, simulated"
    assert topology_label("ps:1+2+evaluator") == "1 worker and 2 parameter servers, and an evaluator, simulated"


def test_a_lessons_machines_are_all_that_its_cells_may_run_on() -> None:
    own = "```{code-cell} python\n:name: own\n:topology: cpu\n\nx\n```\n"
    lesson = render_body(CELL + own, header=FRONT_MATTER + "topologies: [gpu:2, gpu:4]\n")

    assert list(lesson_machine_labels(lesson)) == ["gpu:4", "gpu:2", "cpu"]
