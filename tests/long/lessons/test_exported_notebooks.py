"""Every lesson's notebook, run from its first cell to its last by nbclient on plain TensorFlow, without Lockstep."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from nbclient import NotebookClient

from app.exports.notebook import build_notebook
from app.lessons.model import Lesson
from tests.factories.shipped_lessons import shipped_catalog

LESSONS = [lesson for lesson in shipped_catalog().every() if lesson.language == "en"]


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.slug)
def test_a_notebook_runs_to_its_end_and_says_which_cells_it_skips(lesson: Lesson, tmp_path: Path) -> None:
    made = build_notebook(lesson, "https://example.org/en/courses/a/b")
    environment = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}

    NotebookClient(made, kernel_name="python3", timeout=600, resources={"metadata": {"path": tmp_path}}).execute(
        env=environment
    )

    for cell in made.cells:
        if cell.cell_type == "code" and cell.source.startswith("# Needs "):
            printed = "".join(output.get("text", "") for output in cell.outputs)
            assert printed.startswith("Skipped: this cell needs another machine ("), cell.source
