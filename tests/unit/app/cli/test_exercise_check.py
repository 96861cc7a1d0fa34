"""What authors are told about samples with an unexpected verdict."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.cli.exercise_check import Sample, sample_errors, samples_of
from app.cli.submission_runner import JudgedSubmission
from app.lessons.catalog import Catalog
from app.lessons.model import Cell
from runners.wire.protocol import EVENT_ADAPTER, CheckEvent, Outcome
from tests.factories.exercises import write_exercise_lesson

NAMES = ("It is the mean", "It takes one value")


@pytest.fixture
def cell(tmp_path: Path) -> Cell:
    write_exercise_lesson(tmp_path)
    catalog = Catalog(tmp_path, quiet=True)
    catalog.reload()
    return catalog.lesson("course", "one", "en").exercises[0]


def judged(*outcomes: str, message: str = "", outcome: Outcome = Outcome.ok) -> JudgedSubmission:
    checks = []
    for seq, (name, result) in enumerate(zip(NAMES, outcomes, strict=False), 1):
        event = {"kind": "check", "seq": seq, "at_ms": 0, "name": name, "outcome": result, "message": message}
        check = EVENT_ADAPTER.validate_python(event)
        assert isinstance(check, CheckEvent)
        checks.append(check)
    return JudgedSubmission(outcome, tuple(checks), ())


def sample(name: str, *, passes: bool = False, diagnosis: str = "") -> Sample:
    return Sample(name, "", Path("x.py"), 1, passes, diagnosis)


def test_an_exercise_has_its_solution_starter_and_wrong_answers_as_samples(tmp_path: Path, cell: Cell) -> None:
    catalog = Catalog(tmp_path, quiet=True)
    catalog.reload()
    lesson = catalog.lesson("course", "one", "en")
    samples = list(samples_of(lesson, cell))
    assert [(one.name, one.passes, one.diagnosis) for one in samples] == [
        ("solution", True, ""),
        ("starter", False, ""),
        ("mean--sum.py", False, "the sum, not the mean"),
    ]
    assert "SOLVED" in samples[0].code
    assert "SOLVED" not in samples[1].code
    assert list(samples_of(lesson, lesson.cells[0])) == []


def test_what_is_judged_as_it_should_be_is_no_error(cell: Cell) -> None:
    assert sample_errors(sample("solution", passes=True), judged("passed", "passed"), cell) == []
    assert sample_errors(sample("starter"), judged("failed", "passed"), cell) == []
    wrong = judged("passed", "failed", message="This is the sum.")
    assert sample_errors(sample("mean--sum.py", diagnosis="the sum"), wrong, cell) == []


@pytest.mark.parametrize(
    ("tried", "result", "sentence"),
    [
        (
            sample("solution", passes=True),
            judged("passed", "failed", message="No."),
            "does not pass: 'It takes one value' failed: No.",
        ),
        (
            sample("solution", passes=True),
            judged("passed"),
            "the solution of 'mean' was not judged by the check 'It takes one",
        ),
        (
            sample("solution", passes=True),
            judged("fault", "passed"),
            "the solution of 'mean' could not be judged: 'It is the mean' fault",
        ),
        (
            sample("starter"),
            judged("passed", "passed"),
            "the starter of 'mean' passes every check; make a check stricter",
        ),
        (
            sample("x.py", diagnosis="sum"),
            judged("failed", "passed", message="No."),
            "'x.py' gets another diagnosis than 'sum'",
        ),
        (sample("x.py", diagnosis="sum"), judged("passed", "passed", message="sum"), "'x.py' passes every check"),
        (
            sample("starter"),
            judged(outcome=Outcome.lost),
            "the starter of 'mean' could not be judged: it ended with 'lost'",
        ),
    ],
)
def test_what_is_judged_otherwise_is_said(cell: Cell, tried: Sample, result: JudgedSubmission, sentence: str) -> None:
    assert any(sentence in error for error in sample_errors(tried, result, cell)), sample_errors(tried, result, cell)
