"""``lockstep exercise judge``: the verdict of a real node on a file, as text, as JSON, and as the exit status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.factories.cli_process import CompletedCommand, lockstep
from tests.factories.exercises import WRONG, write_exercise_lesson
from tests.factories.real_supervisor import RealSupervisor

SOLUTION = "def mean(values):\n    return sum(values) / len(values)\n"


@pytest.fixture
def lessons(tmp_path: Path) -> Path:
    return write_exercise_lesson(tmp_path).parent.parent


async def judge(node: RealSupervisor, lessons: Path, *arguments: str, code: str = SOLUTION) -> CompletedCommand:
    settings: dict[str, Any] = {"lessons_dir": lessons, "runner_socket": node.socket, "data_dir": lessons}
    return await lockstep("exercise", "judge", *arguments, typed=code.encode(), **settings)


async def test_a_solution_passes_with_0(node: RealSupervisor, lessons: Path) -> None:
    ended = await judge(node, lessons, "course/one", "mean", "-", "--json")
    assert (ended.status, ended.err) == (0, "")
    assert json.loads(ended.out) == {
        "passed": True,
        "verdict": "passed",
        "outcome": "ok",
        "checks": [
            {"name": "It is the mean", "outcome": "passed", "message": ""},
            {"name": "It takes one value", "outcome": "passed", "message": ""},
        ],
    }


async def test_a_mistake_fails_with_1_and_its_diagnosis(node: RealSupervisor, lessons: Path, tmp_path: Path) -> None:
    file = tmp_path / "answer.py"
    file.write_text(WRONG)
    ended = await judge(node, lessons, "one", "mean", str(file))
    assert ended.status == 1
    assert "This is the sum, not the mean." in ended.out
    assert ended.out.endswith("failed: 1 of 2 checks passed, the code ended 'ok'.\n")


async def test_an_error_is_shown_with_its_line(node: RealSupervisor, lessons: Path) -> None:
    ended = await judge(node, lessons, "course/one", "mean", "-", code="def mean(values):\n    return 1 / 0\n")
    assert ended.status == 1
    assert "ZeroDivisionError" in ended.err
    assert "----> 2     return 1 / 0" in ended.err


SPOOFED = "\u202e\u2066 reordered \x1b[2J\x9b31m"


async def test_an_error_reaches_no_terminal_with_what_it_obeys(node: RealSupervisor, lessons: Path) -> None:
    code = f"def mean(values):\n    raise ValueError({SPOOFED!r})  # \u202e\n"
    ended = await judge(node, lessons, "course/one", "mean", "-", code=code)
    assert "ValueError: [U+202E][U+2066] reordered" in ended.err
    assert not set("\u202e\u2066\x1b\x9b") & set(ended.out + ended.err)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("course/none", "mean", "-"), "There is no lesson 'course/none'. Lessons: course/one."),
        (("course/one", "last", "-"), "course/one has no exercise 'last'. Exercises: mean."),
        (("course/one", "mean", "/no/such/file"), "Cannot read /no/such/file"),
        (("course/one", "mean"), "Missing argument 'FILE'"),
    ],
)
async def test_a_question_that_makes_no_sense_is_2(
    node: RealSupervisor, lessons: Path, arguments: tuple[str, ...], said: str
) -> None:
    ended = await judge(node, lessons, *arguments)
    assert ended.status == 2
    assert said in ended.err


async def test_a_file_that_is_too_long_is_2(node: RealSupervisor, lessons: Path) -> None:
    assert (await judge(node, lessons, "course/one", "mean", "-", code="#" * 100_001)).status == 2
