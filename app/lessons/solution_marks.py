"""Parses the marks around a solution in the code of an exercise. nbgrader and Otter use the same marks.

The learner has to write what is between ``### BEGIN SOLUTION`` and ``### END SOLUTION``. Lines there that start with
``#: `` are shown to the learner instead; without any, ``raise NotImplementedError`` replaces the region.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from app.lessons.directives import LessonError

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
_MARK = re.compile(r"^(?P<indent>[ \t]*)#+[ \t]*(?P<word>BEGIN|END)[ \t]+SOLUTION[ \t]*$", re.IGNORECASE)
_STARTER_LINE = re.compile(r"^(?P<indent>[ \t]*)#:(?: (?P<code>.*)|[ \t]*)$")


@dataclass(frozen=True, slots=True)
class MarkedCode:
    """The code of an exercise, split at its marks."""

    starter: str
    """The code that learners get."""
    solution: str
    """The whole cell with its solution, without the marks."""
    regions: int
    """The number of marked regions."""


def has_marks(code: str) -> bool:
    """Whether a line of the code is a mark."""
    return any(_MARK.match(line) for line in code.split("\n"))


def split_marked_code(code: str, first_line: int) -> tuple[MarkedCode, list[LessonError]]:
    """Split the code of an exercise at its marks. The code starts on ``first_line`` of its file."""
    starter: list[str] = []
    solution: list[str] = []
    faults: list[LessonError] = []
    opened: int | None = None
    indent, regions = "", 0
    instead: list[str] = []
    for number, line in enumerate(code.split("\n"), first_line):
        mark, replaced = _MARK.match(line), _STARTER_LINE.match(line)
        word = mark["word"].upper() if mark else ""
        if mark and word == "BEGIN":
            if opened is not None:
                faults.append(LessonError(number, f"the solution that begins on line {opened} has no end; write {END}"))
            opened, indent, instead, regions = number, mark["indent"], [], regions + 1
        elif mark and opened is None:
            faults.append(LessonError(number, f"this solution has no beginning; write {BEGIN} above it"))
        elif mark:
            starter += instead or [f"{indent}raise NotImplementedError"]
            opened = None
        elif opened is not None and replaced:
            instead.append((replaced["indent"] + (replaced["code"] or "")).rstrip())
        elif opened is not None:
            solution.append(line)
        else:
            starter.append(line)
            solution.append(line)
    if opened is not None:
        faults.append(LessonError(opened, f"the solution that begins here has no end; write {END} below it"))
    return MarkedCode("\n".join(starter), "\n".join(solution), regions), faults
