"""Runs the cells of a lesson as a learner would: in order, in sandboxes, with one session for each machine.

Pure functions decide what an outcome means for a cell; ``LessonRunner`` talks to the supervisor.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from app.cli.ansi_filter import plain_text
from app.cli.connect_runner import run_events
from app.imports.packages import how_to_install
from app.lessons.expectations import meets_any, unmet_expectations
from app.lessons.model import Cell, CellTag, Lesson
from app.lessons.questions import NUMBER_PLACEHOLDER
from app.runs.printed_lines import printed_lines
from runners.wire.client import RunnerClient, RunnerError
from runners.wire.protocol import ErrorEvent, FinishedEvent, Outcome, RunRequest, SessionSpec

_TRACEBACK_LINES = 12
_INVALID_IN_NAME = re.compile(r"[^a-z0-9]")
"""The characters of a topology that a session's name cannot have."""
_NO_MODULE = re.compile(r"No module named '(\w+)'$")
_ARROW = re.compile(r"^-+> (\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CellResult:
    cell: Cell
    outcome: Outcome
    duration_s: float
    error: ErrorEvent | None
    lines: tuple[str, ...] = ()
    """Its printed text without colors; each lane's text is on separate lines."""
    error_lines: tuple[str, ...] = ()
    """Those of ``lines`` that name its errors."""


def runnable_cells(lesson: Lesson) -> list[Cell]:
    """The cells to run, in order."""
    return [cell for cell in lesson.cells if CellTag.skip_execution not in cell.tags]


def solved_code(cell: Cell) -> str:
    """The code of a cell, of an exercise its solution: later cells may need it."""
    return cell.exercise.solution if cell.exercise else cell.code


def cell_errors(result: CellResult) -> list[str]:
    """The errors of a cell's result: an unexpected outcome, or else missing output. Pure."""
    wrong = _outcome_error(result)
    if wrong is not None:
        return [wrong]
    cell = result.cell
    return [f"cell '{cell.name}' {sentence}" for sentence in unmet_expectations(cell.expect, result.lines)]


def _outcome_error(result: CellResult) -> str | None:
    cell, outcome, error = result.cell, result.outcome, result.error
    if CellTag.raises_exception in cell.tags:
        if outcome is Outcome.error:
            return None
        return f"cell '{cell.name}' ended with '{outcome}', but its tag raises-exception says that it raises"
    if outcome is Outcome.ok:
        return None
    if outcome is Outcome.error and error is not None:
        return f"cell '{cell.name}' raised {error.name}: {plain_text(error.value)[:300]}{_installation(error)}"
    return f"cell '{cell.name}' ended with '{outcome}'"


def _installation(error: ErrorEvent) -> str:
    """How to install the package of a module that was not found; empty after other errors."""
    missing = _NO_MODULE.match(plain_text(error.value)) if error.name == "ModuleNotFoundError" else None
    return f"; {how_to_install(missing[1])}" if missing is not None else ""


def error_line(result: CellResult) -> int:
    """The line of the lesson's file to show: that of the innermost frame in the cell, or the first line of code.

    A solution's lines are not those of its file, so for an exercise it is always the first.
    """
    cell, error = result.cell, result.error
    if cell.exercise is not None:
        return cell.line
    last = cell.line + cell.code.count("\n")
    for frame in reversed(error.frames if error else []):
        arrow = _ARROW.search(plain_text(frame.text)) if frame.own else None
        if arrow is not None:
            return min(cell.line + int(arrow[1]) - 1, last)
    return cell.line


def traceback_tail(error: ErrorEvent | None) -> tuple[str, ...]:
    """The end of the traceback, without colors."""
    frames = error.frames if error else []
    lines = "\n".join(plain_text(frame.text) for frame in frames).split("\n")
    return tuple(line.rstrip() for line in lines if line.strip())[-_TRACEBACK_LINES:]


def prediction_errors(lesson: Lesson, result: CellResult) -> list[str]:
    """What is missing in the output of a cell that answers predictions, or in its ``expect``. Pure."""
    if result.outcome is Outcome.error and CellTag.raises_exception in result.cell.tags:
        return _errors_without_result(lesson, result)
    if result.outcome is not Outcome.ok:
        return []
    return [
        f"cell '{result.cell.name}' did not print {one.source!r}, which the prediction '{one.name}' is answered from;"
        " print it, or correct 'from'"
        for one in lesson.predictions
        if one.cell == result.cell.name and one.source is not None and not _prints(one.source, result.lines)
    ]


def _errors_without_result(lesson: Lesson, result: CellResult) -> list[str]:
    cell = result.cell
    if result.error is None or meets_any(cell.expect, result.error_lines):
        return []
    return [
        f"cell '{cell.name}' raised {result.error.name}, which its 'expect' does not name, so learners would not see"
        f" the result of the prediction '{one.name}'; add {result.error.name} to 'expect'"
        for one in lesson.predictions
        if one.cell == cell.name and one.source is None
    ]


def _prints(source: str, lines: Sequence[str]) -> bool:
    number = r"[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
    pattern = re.compile(re.escape(source).replace(re.escape(NUMBER_PLACEHOLDER), number))
    return any(map(pattern.search, lines))


class LessonRunner:
    """One lesson's sessions; a context manager that ends them."""

    def __init__(self, client: RunnerClient) -> None:
        self._client = client
        self._name = secrets.token_hex(12)
        self._sessions: set[str] = set()

    async def __aenter__(self) -> LessonRunner:
        return self

    async def __aexit__(self, *_: object) -> None:
        for session in self._sessions:
            with suppress(RunnerError):
                await self._client.end(session)

    async def run_cell(self, cell: Cell) -> CellResult:
        """Run a cell to its end.

        Raises:
            RunnerError: the supervisor declined, or does not respond.
        """
        session = f"{self._name}-{_INVALID_IN_NAME.sub('-', cell.topology)}-{cell.keras}"
        self._sessions.add(session)
        spec = SessionSpec(owner=self._name, topology=cell.topology, keras=2 if cell.keras == 2 else 3)
        request = RunRequest(id=secrets.token_hex(16), session=session, spec=spec, code=solved_code(cell))
        await self._client.submit(request)
        events = [event async for event in run_events(self._client, request.id)]
        error = next((event for event in reversed(events) if isinstance(event, ErrorEvent)), None)
        end = next((event for event in events if isinstance(event, FinishedEvent)), None)
        if end is None:
            return CellResult(cell, Outcome.lost, 0.0, error)
        errors = printed_lines(event for event in events if isinstance(event, ErrorEvent))
        return CellResult(cell, end.outcome, end.duration_ms / 1000, error, printed_lines(events), errors)
