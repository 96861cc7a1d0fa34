"""Notebooks with Lockstep's kernels in nbclient, including a lesson read by jupytext."""

from __future__ import annotations

from typing import Any

import jupytext
import nbformat
import pytest
from nbclient import NotebookClient

from app.exports.notebook import build_notebook
from app.exports.setup_cell import setup_code
from tests.factories.jupyter_kernels import REPLICAS, ROOT, install_kernels
from tests.factories.real_supervisor import RealSupervisor
from tests.factories.shipped_lessons import shipped_catalog

pytestmark = pytest.mark.usefixtures("jupyter")


def executed(kernel: str, *cells: str, allow_errors: bool = False) -> list[list[Any]]:
    """The outputs of each cell, run by a real nbclient."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in cells])
    NotebookClient(notebook, kernel_name=kernel, timeout=120, allow_errors=allow_errors).execute()
    return [cell.outputs for cell in notebook.cells]


def text_of(outputs: list[Any], stream: str) -> str:
    return "".join(output["text"] for output in outputs if output.output_type == "stream" and output.name == stream)


WHO = """
import json, os
print("I am", json.loads(os.environ["TF_CONFIG"])["task"]["index"])
"""
TRAINS = """
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
@tf.function
def step():
    context = tf.distribute.get_replica_context()
    return context.all_reduce("sum", tf.cast(context.replica_id_in_sync_group, tf.float32) + 1)
print(float(strategy.run(step)))
"""


async def test_a_lesson_read_by_jupytext_runs_in_nbclient(node: RealSupervisor) -> None:
    install_kernels(node.socket)
    lesson = jupytext.read(ROOT / "lessons/distributed-tensorflow/distribution-strategies/lesson.md")
    lesson.cells = lesson.cells[:9]
    done = await NotebookClient(lesson, kernel_name=lesson.metadata.kernelspec.name, timeout=120).async_execute()
    cells = [cell for cell in done.cells if cell.cell_type == "code"]
    assert [cell.metadata["name"] for cell in cells] == ["strategy", "components", "assign", "model"]
    assert all(cell.outputs for cell in cells)
    assert cells[0].outputs[0]["text"].startswith("Replicas: 4\n")


def test_a_notebook_on_two_workers_says_in_words_whose_each_line_is(node: RealSupervisor) -> None:
    install_kernels(node.socket, "--topology=workers:2")
    who, trained, failed = executed(
        "lockstep-workers-2", WHO, TRAINS, "if json.loads(os.environ['TF_CONFIG'])['task']['index']:\n    1 / 0",
        allow_errors=True,
    )  # fmt: skip

    assert sorted(text_of(who, "stdout").splitlines()) == ["worker 0 | I am 0", "worker 1 | I am 1"]
    assert sorted(text_of(trained, "stdout").splitlines()) == ["worker 0 | 3.0", "worker 1 | 3.0"]
    (error,) = [output for output in failed if output.output_type == "error"]
    assert error.traceback[0] == "worker 1 |"
    assert error.ename == "ZeroDivisionError"


REPLICAS_PRINT = """
import sys
import tensorflow as tf
strategy = tf.distribute.MirroredStrategy(cross_device_ops=tf.distribute.NcclAllReduce())
@tf.function
def step():
    tf.print("here", output_stream=sys.stdout)
    return tf.distribute.get_replica_context().all_reduce("sum", tf.constant(1.0))
strategy.run(step)
import lockstep
with strategy.scope():
    lockstep.placement([tf.Variable(1.0, name="weight")])
lockstep.log(1, loss=0.5)
print("done")
"""


def test_a_notebook_reads_the_lanes_of_replicas_and_notices_as_text(node: RealSupervisor) -> None:
    install_kernels(node.socket)
    mistake = "strategy.run(step).numpy()"
    outputs, failed = executed("lockstep-gpu-4", REPLICAS_PRINT, mistake, allow_errors=True)

    assert sorted(text_of(outputs, "stdout").splitlines()) == ["done", *(f"replica {i} | here" for i in range(4))]
    assert "NCCL needs real GPUs." in text_of(outputs, "stderr")
    (picture,) = [output for output in outputs if output.output_type == "display_data"]
    assert "MirroredVariable" in picture.data["text/plain"]
    assert "strategy.run returned one value for each replica." in text_of(failed, "stderr")


async def test_an_exported_cluster_lesson_runs_in_the_kernel_that_its_first_cells_name(node: RealSupervisor) -> None:
    install_kernels(node.socket)
    lesson = shipped_catalog().lesson("distributed-tensorflow", "multi-worker", "en")
    made = build_notebook(lesson, "https://example.org/en")
    exercises = [cell for cell in made.cells if "raises-exception" in cell.metadata.get("tags", ())]
    made.cells = [cell for cell in made.cells if cell.cell_type == "code" and cell not in exercises][:4]
    await NotebookClient(made, kernel_name="lockstep-workers-2", timeout=120).async_execute()

    setup, task, connected, summed = made.cells
    assert text_of(setup.outputs, "stdout") == ""
    assert "worker 1 | I am:    {'type': 'worker', 'index': 1}" in text_of(task.outputs, "stdout")
    assert "worker 0 | replicas in sync: 2" in text_of(connected.outputs, "stdout")
    assert "worker 1 | all together: 3.0" in text_of(summed.outputs, "stdout")


def test_the_setup_cell_leaves_the_devices_of_a_lockstep_kernel_to_be_set_up(node: RealSupervisor) -> None:
    install_kernels(node.socket)
    lesson = shipped_catalog().lesson("distributed-tensorflow", "mirrored-strategy", "en")
    grows = "tf.config.experimental.set_memory_growth(gpus[0], True); print('grows')"
    setup, set_up = executed("lockstep-gpu-4", setup_code(lesson), grows)

    assert text_of(setup, "stdout").startswith("devices: ['/physical_device:GPU:0', ")
    assert text_of(set_up, "stdout") == "grows\n"


def test_a_notebook_executed_by_nbclient_has_four_replicas(node: RealSupervisor) -> None:
    install_kernels(node.socket)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(REPLICAS)])
    NotebookClient(notebook, kernel_name="lockstep-gpu-4", timeout=60).execute()
    assert [o["text"] for o in notebook.cells[0].outputs] == ["4\n"]
