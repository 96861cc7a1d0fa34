"""Which runs show the result of a prediction."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from app.exercises.predictions import can_show_result
from app.lessons.catalog import Catalog
from app.lessons.model import CellTag
from runners.wire.protocol import Outcome
from tests.factories.course import LESSON, write_course
from tests.factories.judged_lesson import PREDICTION

STATED = replace(PREDICTION, source=None, answer=16.0)


@pytest.mark.parametrize(
    ("stated", "raises", "outcome", "shown"),
    [
        (True, False, Outcome.ok, True),
        (True, False, Outcome.error, False),
        (True, True, Outcome.error, True),
        (True, True, Outcome.timeout, False),
        (False, False, Outcome.ok, True),
        (False, False, Outcome.error, True),
        (False, False, Outcome.interrupted, False),
    ],
)
def test_a_stated_result_needs_a_run_as_its_author_intended(
    tmp_path: Path, stated: bool, raises: bool, outcome: Outcome, shown: bool
) -> None:
    catalog = Catalog(write_course(tmp_path), quiet=True)
    catalog.reload()
    lesson = catalog.find_lesson(LESSON, "en")
    assert lesson is not None
    cell = replace(lesson.cells[0], tags=frozenset({CellTag.raises_exception} if raises else ()))
    assert can_show_result(STATED if stated else PREDICTION, cell, outcome) is shown
