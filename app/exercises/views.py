"""View models of exercises for the templates. Pure, in the current language."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from app.exercises.models import Verdict
from app.exercises.reviews import ExerciseReviews
from app.exercises.submissions import FAILED_TRIES_BEFORE_SOLUTION, Tries, Try
from app.exercises.verdicts import CheckResult
from app.lessons.model import Cell, Check, Exercise


@dataclass(frozen=True, slots=True)
class CheckView:
    """A check: its title, its result in the try that is shown, and its open hints."""

    number: int
    """From 0."""
    check: Check
    result: CheckResult
    earned: bool
    """Whether its XP was earned, by any try."""
    hints_open: int = 0

    @property
    def hints(self) -> tuple[str, ...]:
        return self.check.hints[: self.hints_open]

    @property
    def has_more_hints(self) -> bool:
        return self.hints_open < len(self.check.hints)


@dataclass(frozen=True, slots=True)
class ExerciseView:
    """The panel below an exercise."""

    cell: Cell
    checks: tuple[CheckView, ...]
    tries: Tries
    passed: bool
    """Whether the exercise is done: any try passed, including deleted ones, and was accepted if it is reviewed.

    What passed while a group reviewed it, and was not accepted before that ended, is checked once more.
    """
    awarded: bool = False
    """Whether the ledger has the exercise."""
    reviews: ExerciseReviews | None = None
    """None if the exercise is not reviewed."""

    @property
    def xp(self) -> int:
        """The total XP of the exercise and its checks."""
        exercise = self.cell.exercise
        return (exercise.xp if exercise else 0) + sum(view.check.xp for view in self.checks)

    @property
    def shown(self) -> Try | None:
        """The try whose results are shown."""
        return self.tries.latest

    @property
    def passed_run(self) -> str | None:
        """The ID of the latest try that passed."""
        return next((one.run_id for one in self.tries.tries if one.verdict is Verdict.passed), None)

    @property
    def passed_count(self) -> int:
        """The number of checks that the shown try passed."""
        return sum(view.result.outcome == "passed" for view in self.checks)

    @property
    def solution_open(self) -> bool:
        """Whether the learner may see the solution."""
        return self.passed or self.tries_to_solution == 0

    @property
    def tries_to_solution(self) -> int:
        """How many more failed tries unlock the solution."""
        return max(0, FAILED_TRIES_BEFORE_SOLUTION - self.tries.failed_count)

    @property
    def running(self) -> str:
        """The ID of the run that is judging the latest submission, or ""."""
        latest = self.tries.latest
        return latest.run_id if latest is not None and latest.verdict is None else ""


def exercise_view(
    cell: Cell,
    exercise: Exercise,
    tries: Tries,
    earned: Collection[str],
    hints_open: Sequence[int] = (),
    reviews: ExerciseReviews | None = None,
) -> ExerciseView:
    """``earned``: subjects of the exercise's ledger entries without its own name; "" if it is done."""
    said = {result.name: result for result in tries.latest.results} if tries.latest is not None else {}
    checks = tuple(
        CheckView(
            number,
            check,
            said.get(check.name, CheckResult(check.name, check.xp)),
            check.name in earned,
            min(hints_open[number] if number < len(hints_open) else 0, len(check.hints)),
        )
        for number, check in enumerate(exercise.checks)
    )
    awarded = "" in earned
    passed = awarded or (tries.passed if reviews is None else reviews.accepted)
    return ExerciseView(cell, checks, tries, passed, awarded, reviews)


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a diff: ``same``, ``added`` (only in the solution) or ``removed`` (only in the learner's code)."""

    kind: str
    text: str


def diff_lines(theirs: str, solution: str) -> list[DiffLine]:
    """A line-by-line diff from the learner's code to the solution.

    Lines are compared only for equality: ``difflib.ndiff`` also compares the characters of all pairs of lines, which
    takes seconds for the longest code that a learner can submit.
    """
    mine, right = theirs.rstrip().splitlines(), solution.rstrip().splitlines()
    lines: list[DiffLine] = []
    for tag, begin, end, right_begin, right_end in difflib.SequenceMatcher(None, mine, right, False).get_opcodes():
        if tag == "equal":
            lines += [DiffLine("same", text) for text in mine[begin:end]]
            continue
        lines += [DiffLine("removed", text) for text in mine[begin:end]]
        lines += [DiffLine("added", text) for text in right[right_begin:right_end]]
    return lines
