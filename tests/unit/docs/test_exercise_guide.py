"""The guide to writing exercises: what it has its readers write is right."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from app.cli.lesson_runner import CellResult, prediction_errors
from app.lessons.catalog import Catalog
from app.lessons.jupyter_metadata import jupyter_metadata_errors
from runners.wire.protocol import Outcome
from tests.factories.exercises import GUIDE, write_guide_lesson


def test_its_lesson_has_no_mistake_and_an_exercise_with_checks_and_a_wrong_answer(tmp_path: Path) -> None:
    write_guide_lesson(tmp_path)
    catalog = Catalog(tmp_path, quiet=True)
    catalog.reload()
    lesson = catalog.with_drafts.lesson("my-course", "averages", "en")
    exercise = lesson.exercises[0].exercise

    assert catalog.problems == ()
    assert list(jupyter_metadata_errors(lesson)) == []
    assert exercise is not None
    assert (len(exercise.checks), len(exercise.wrong_answers)) == (2, 1)
    assert exercise.task
    assert exercise.solution_prose


def test_its_predictions_and_its_quiz_fit_its_lesson(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_guide_lesson(tmp_path)
    examples = re.findall(r"^(`{3,})md\n(.*?)^\1$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(examples) == 2
    cell = "```{code-cell} ipython3\n:name: shares\n"
    above = "\n".join(example for _, example in examples)
    text = (folder / "lesson.md").read_text()
    (folder / "lesson.md").write_text(text.replace(cell, f"{above}\n{cell}"))
    catalog = Catalog(tmp_path, quiet=True)
    catalog.reload()
    lesson = catalog.with_drafts.lesson("my-course", "averages", "en")
    assert catalog.problems == ()
    assert len(lesson.predictions) == 3
    values: dict[str, list[list[float]]] = {}
    exec(lesson.cells[0].code, values)
    result = CellResult(lesson.cells[0], Outcome.ok, 0.0, None, tuple(capsys.readouterr().out.splitlines()))
    assert prediction_errors(lesson, result) == []
    assert lesson.predictions[0].answer == len(values["shares"][0])


def test_its_script_tries_the_check_on_a_hundred_seeds(tmp_path: Path) -> None:
    folder = write_guide_lesson(tmp_path)

    tried = subprocess.run([sys.executable, "try_checks.py"], cwd=folder, capture_output=True, text=True, check=True)

    assert tried.stdout.count("Each part is divided by the size of its own share.") == 100
