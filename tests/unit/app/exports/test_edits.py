"""Edits that a page sends: each goes to its cell, and what is not code of a cell is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from app.errors import InvalidInput, LockstepError
from app.exports.edits import parse_edits, with_edits
from app.exports.latest_runs import CellRun
from app.lessons.model import Lesson
from runners.wire.protocol import MAX_CODE_BYTES
from tests.factories.lesson_source import CELL, render_body


@pytest.fixture
def lesson() -> Lesson:
    """A lesson with a cell ``one``, which was called ``first`` before."""
    lesson = render_body(CELL)
    return replace(lesson, cells=(replace(lesson.cells[0], was=("first",)),))


def test_an_edit_follows_the_name_of_its_cell_and_one_of_no_cell_is_left_out(lesson: Lesson) -> None:
    assert parse_edits('{"first": "x", "none": "y"}', lesson) == {"one": "x"}


@pytest.mark.parametrize(
    "text", ["", "x", "[]", "null", '{"one": 1}', '{"one": {"code": "x"}}', '{"one": "\\ud800"}', "[" * 9_999]
)
def test_what_is_not_a_text_for_each_cell_is_refused(lesson: Lesson, text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_edits(text, lesson)


@pytest.mark.parametrize("code", ["x" * (MAX_CODE_BYTES + 1), "\0"])
def test_code_that_no_cell_can_have_is_refused(lesson: Lesson, code: str) -> None:
    with pytest.raises(LockstepError, match="code"):
        parse_edits(json.dumps({"one": code}), lesson)


def test_an_edit_replaces_the_run_unless_that_was_its_code() -> None:
    ran = CellRun("ran", (), 1)

    assert with_edits({"one": ran, "two": ran}, {"one": "edited", "two": "ran", "three": ""}) == {
        "one": CellRun("edited"),
        "two": ran,
        "three": CellRun(""),
    }
