"""The notebooks of lessons, run from the first cell to the last by nbclient on plain TensorFlow, without Lockstep."""

from __future__ import annotations

from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell

from app.exports.notebook import build_notebook
from app.lessons.model import Lesson
from tests.factories.plain_jupyter import run_in_plain_jupyter
from tests.factories.shipped_lessons import chosen_lessons

STAND_INS = """
import numpy as np
import tensorflow as tf

def stand_in(shape, train, columns):
    def part(count, rng=np.random.default_rng(0)):
        labels = rng.integers(0, 10, (count, *columns), dtype=np.uint8)
        brightness = labels.reshape(-1, *[1] * len(shape)) * np.uint8(19)
        return rng.integers(0, 60, (count, *shape), dtype=np.uint8) + brightness, labels
    return lambda: (part(train), part(10_000))

tf.keras.datasets.mnist.load_data = stand_in((28, 28), 60_000, ())
tf.keras.datasets.fashion_mnist.load_data = stand_in((28, 28), 60_000, ())
tf.keras.datasets.cifar10.load_data = stand_in((32, 32, 3), 50_000, (1,))
"""
"""Data of the same shapes as those that notebooks download: tests may have no network."""


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("lesson", chosen_lessons(), ids=lambda lesson: lesson.slug)
def test_a_notebook_runs_to_its_end_and_says_which_cells_it_skips(lesson: Lesson, tmp_path: Path) -> None:
    made = build_notebook(lesson, "https://example.org/en/courses/a/b")
    setup = next(number for number, cell in enumerate(made.cells) if cell.cell_type == "code")
    if "keras.datasets" in lesson.source:
        made.cells.insert(setup + 1, new_code_cell(STAND_INS))
    run_in_plain_jupyter(made, tmp_path, timeout_s=600)

    for cell in made.cells:
        if cell.cell_type == "code" and cell.source.startswith("# Needs "):
            printed = "".join(output.get("text", "") for output in cell.outputs)
            assert printed.startswith("Skipped: this cell needs another machine ("), cell.source
