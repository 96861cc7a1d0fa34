"""``lockstep lesson check`` on exercises: an author's samples are judged on a real node."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.cli.exercise_check import judge_samples
from app.lessons.catalog import Catalog
from runners.wire.client import RunnerClient
from tests.factories.exercises import BODY, CHECKS, write_exercise_lesson, write_guide_lesson
from tests.factories.lesson_source import FRONT_MATTER, write_lesson


async def judged(client: RunnerClient, folder: Path) -> list[tuple[str, str, list[str]]]:
    catalog = Catalog(folder.parent.parent, quiet=True)
    catalog.reload()
    lesson = catalog.with_drafts.lesson(folder.parent.name, folder.name, "en")
    (cell,) = lesson.exercises
    return [
        (one.sample.name, one.judged.verdict, [str(error).removeprefix(f"{folder}/") for error in one.errors])
        async for one in judge_samples(client, lesson, cell)
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_exercise_lesson(tmp_path)


async def test_solution_passes_and_starter_and_wrong_answers_fail(client: RunnerClient, folder: Path) -> None:
    assert await judged(client, folder) == [
        ("solution", "passed", []),
        ("starter", "failed", []),
        ("answer None", "failed", []),
        ("answer []", "failed", []),
        ("mean--sum.py", "failed", []),
    ]


async def test_what_is_judged_otherwise_is_an_error_with_its_place(client: RunnerClient, folder: Path) -> None:
    (folder / "wrong" / "mean--sum.py").unlink()
    (folder / "wrong" / "mean--none.py").write_text(
        "# diagnosis: the sum, not the mean\ndef mean(values): return 0.0\n"
    )
    (folder / "wrong" / "mean--right.py").write_text(
        "# diagnosis: any\nmean = lambda values: sum(values) / len(values)\n"
    )
    body = BODY.replace("#: return sum(values)", "#: return sum(values) / len(values)").replace(
        "len(values)\n", "2\n", 1
    )
    write_lesson(
        folder,
        body.replace("SOLVED_BY_THE_AUTHOR = len(values)", "SOLVED_BY_THE_AUTHOR = 2"),
        header=FRONT_MATTER + "topology: cpu\n",
    )

    solution, starter, _, _, none, right = await judged(client, folder)

    assert solution[1] == "failed"
    assert "lesson.md:" in solution[2][0]
    assert "the solution of 'mean' does not pass: 'It takes one value' failed" in solution[2][0]
    assert none[2][0].startswith("wrong/mean--none.py:1: 'mean--none.py' gets another diagnosis than 'the sum, not")
    assert right[0] == "mean--right.py"
    assert starter[0] == "starter"


async def test_a_check_that_fails_itself_is_reported_once_with_its_line(client: RunnerClient, folder: Path) -> None:
    (folder / "checks.py").write_text(CHECKS.replace("work.rng", "work.random"))

    solution, *others = await judged(client, folder)

    line = next(number for number, line in enumerate(CHECKS.splitlines(), 1) if "work.rng" in line)
    (error,) = solution[2]
    assert solution[1] == "fault"
    assert error.startswith(f"checks.py:{line}: the check 'It is the mean' raised AttributeError: ")
    assert [errors for _, _, errors in others] == [[]] * len(others)


async def test_the_exercise_of_the_guide_is_judged_as_the_guide_says(client: RunnerClient, tmp_path: Path) -> None:
    assert await judged(client, write_guide_lesson(tmp_path / "guide")) == [
        ("solution", "passed", []),
        ("starter", "failed", []),
        ("answer None", "failed", []),
        ("answer []", "failed", []),
        ("part-of-mean--own-share.py", "failed", []),
    ]
