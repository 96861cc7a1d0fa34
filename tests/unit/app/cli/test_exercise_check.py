"""The messages to authors about samples with an unexpected verdict."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.cli.exercise_check import Sample, check_faults, empty_answer, sample_errors, samples_of
from app.cli.submission_runner import JudgedSubmission
from app.lessons.catalog import Catalog
from app.lessons.model import Cell
from runners.wire.check_messages import FAULT, NOT_DEFINED
from runners.wire.protocol import EVENT_ADAPTER, CheckEvent, Outcome
from tests.factories.exercises import write_exercise_lesson

NAMES = ("It is the mean", "It takes one value")


@pytest.fixture
def cell(tmp_path: Path) -> Cell:
    write_exercise_lesson(tmp_path)
    catalog = Catalog(tmp_path, quiet=True)
    catalog.reload()
    return catalog.lesson("course", "one", "en").exercises[0]


def judged(*outcomes: str, message: str = "", outcome: Outcome = Outcome.ok, **more: object) -> JudgedSubmission:
    checks = []
    for seq, (name, result) in enumerate(zip(NAMES, outcomes, strict=False), 1):
        event = {"kind": "check", "seq": seq, "at_ms": 0, "name": name, "outcome": result, "message": message}
        check = EVENT_ADAPTER.validate_python(event | more)
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
        ("answer None", False, ""),
        ("answer []", False, ""),
        ("mean--sum.py", False, "the sum, not the mean"),
    ]
    assert "SOLVED" in samples[0].code
    assert "SOLVED" not in samples[1].code
    assert samples[2].code == "def mean(*args, **kwargs): return None"
    assert list(samples_of(lesson, lesson.cells[0])) == []


def test_an_empty_answer_has_the_functions_of_the_solution_and_nothing_else() -> None:
    solution = "%time\n@tf.function\ndef a(x):\n    def b(): ...\n    return b()\n\nasync def c(): ...\nprint(a(1))"
    assert empty_answer(solution, "[]").splitlines() == [
        "def a(*args, **kwargs): return []",
        "def c(*args, **kwargs): return []",
    ]
    assert empty_answer("x = 3", "None") == ""


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
            "the starter of 'mean' passes every check; make a check stricter, or the starter wrong",
        ),
        (
            sample("solution", passes=True),
            judged("error", message=NOT_DEFINED, values={"name": "mean"}),
            "Your code defines no mean; define it in the solution, or correct the name in checks.py",
        ),
        (
            sample("answer []"),
            judged("fault", "failed"),
            "the answer [] of 'mean' could not be judged: 'It is the mean' fault",
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


FRAMES = """\
Traceback (most recent call last):
  File "results.py", line 35, in run_check
    check(work)
  File "checks.py", line 12, in is_mean
    helper(work)
  File "checks.py", line 4, in helper
    1 + work
"""


@pytest.mark.parametrize(
    ("detail", "fault"),
    [
        (
            f"{FRAMES}TypeError: unsupported operand\n",
            {
                4: "the check 'It is the mean' raised TypeError: unsupported operand; correct it, or pass the"
                " result to close or equal before you compute with it"
            },
        ),
        (
            f"{FRAMES}runners.checks.work.JudgingFailed: the solution gave no f: Your code defines no f.\n",
            {
                4: "the check 'It is the mean' cannot judge: the solution gave no f: Your code defines no f; correct"
                " it, or the solution"
            },
        ),
        (
            'Traceback:\n  File "checks.py", line 3, in <module>\n    x\nNameError: no x\n',
            {3: "this raised NameError: no x; correct it"},
        ),
        ("the judge ended crash", {}),
    ],
    ids=["raised", "no reference", "module", "judge"],
)
def test_a_fault_of_a_check_has_its_line_and_is_said_once(detail: str, fault: dict[int, str]) -> None:
    assert check_faults(judged("fault", "fault", message=FAULT, detail=detail)) == fault
    assert check_faults(judged("failed", "passed", detail=detail)) == {}


def test_authors_are_not_told_what_learners_are_told_about_a_fault(cell: Cell) -> None:
    (error,) = sample_errors(sample("starter"), judged("fault", message=FAULT, detail="the judge ended crash"), cell)

    assert error == "the starter of 'mean' could not be judged: 'It is the mean' fault (the judge ended crash)"
