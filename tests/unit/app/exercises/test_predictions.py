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
LOST = ("UnavailableError: in worker 0: a peer has ended",)


@pytest.mark.parametrize(
    ("stated", "raises", "outcome", "errors", "shown"),
    [
        (True, False, Outcome.ok, (), True),
        (True, False, Outcome.error, LOST, False),
        (True, True, Outcome.error, LOST, True),
        (True, True, Outcome.error, ("NameError: name 'strategy' is not defined",), False),
        (True, True, Outcome.error, ("StopIteration: ", *LOST), True),
        (True, True, Outcome.ok, (), False),
        (True, True, Outcome.timeout, LOST, False),
        (False, False, Outcome.ok, (), True),
        (False, False, Outcome.error, LOST, True),
        (False, True, Outcome.error, ("NameError: name 'strategy' is not defined",), True),
        (False, False, Outcome.interrupted, (), False),
    ],
)
def test_a_stated_result_needs_a_run_as_its_author_intended(
    tmp_path: Path, stated: bool, raises: bool, outcome: Outcome, errors: tuple[str, ...], shown: bool
) -> None:
    catalog = Catalog(write_course(tmp_path), quiet=True)
    catalog.reload()
    lesson = catalog.find_lesson(LESSON, "en")
    assert lesson is not None
    tags = frozenset({CellTag.raises_exception} if raises else ())
    cell = replace(lesson.cells[0], tags=tags, expect=("UnavailableError",) if raises else ())
    assert can_show_result(STATED if stated else PREDICTION, cell, outcome, errors) is shown
