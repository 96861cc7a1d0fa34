"""The guide to writing exercises: what it has its readers write is right."""

from __future__ import annotations

import re
from pathlib import Path

from app.lessons.catalog import Catalog
from app.lessons.jupyter_metadata import jupyter_metadata_errors
from tests.factories.exercises import GUIDE, write_guide_lesson
from tests.factories.lesson_source import errors_in_body

CELL = "```{code-cell} python\n:name: shares\n\nprint(1)\n```\n"


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


def test_its_predictions_and_its_quiz_have_no_mistake() -> None:
    examples = re.findall(r"^(`{3,})md\n(.*?)^\1$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(examples) == 2
    for _, example in examples:
        assert errors_in_body(f"{example}\n{CELL}") == []
