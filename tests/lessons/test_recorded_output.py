"""The output that the lesson on keras.distribution shows was recorded on JAX, which Lockstep does not install.

What the cells of the lesson compute on TensorFlow has to agree with it. ``tests/long/lessons/test_cells.py`` runs them.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from app.lessons.model import Cell
from tests.factories.shipped_lessons import shipped_catalog

LESSON = shipped_catalog().lesson("distributed-tensorflow", "keras-distribution", "en")
PROGRAM = Path(__file__).parents[2] / "lessons" / "distributed-tensorflow" / "keras-distribution/assets/keras_on_jax.py"
RECORDED = PROGRAM.with_suffix(".txt").read_text(encoding="utf-8")
PYTHON = os.environ.get("LOCKSTEP_TEST_JAX_PYTHON", "")


def cell(name: str) -> Cell:
    found = LESSON.cell(name)
    assert found is not None
    return found


def test_the_losses_on_jax_are_those_of_the_cell_on_tensorflow() -> None:
    recorded = re.findall(r"^(?:DataParallel|columns first|rows first): losses .*", RECORDED, re.MULTILINE)

    assert len(recorded) == 3
    assert set(recorded) <= set(cell("dtensor").expect)


def test_the_pieces_on_jax_are_those_of_the_plan() -> None:
    recorded = re.findall(r"^(mlp/\S+: )(\(.*?\) on each)", RECORDED, re.MULTILINE)

    assert len(recorded) == 4
    for path, piece in recorded:
        assert any(line.startswith(path) and piece in line for line in cell("plan").expect)


@pytest.mark.parametrize("title", ["DataParallel", "columns first"])
def test_the_collectives_on_jax_are_as_large_as_the_lesson_counts(title: str) -> None:
    recorded = re.search(rf"^{title}: losses.*\n +(.*)", RECORDED, re.MULTILINE)
    assert recorded is not None
    sizes = [int(size.replace(",", "")) for size in re.findall(r" of ([\d,]+)", recorded[1])]

    assert f"{title}: {sum(sizes)} values" in cell("count").expect


@pytest.mark.skipif(not PYTHON, reason="LOCKSTEP_TEST_JAX_PYTHON names no Python that has Keras and JAX")
def test_the_program_prints_what_was_recorded() -> None:
    printed = subprocess.run([PYTHON, PROGRAM], stdout=subprocess.PIPE, text=True, check=True)

    assert printed.stdout == RECORDED
