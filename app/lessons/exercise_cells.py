"""Exercises among a lesson's cells, and their prose in ``{exercise}`` and ``{solution}``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from markdown_it.token import Token

from app.lessons.directives import Directive, LessonError, lesson_warning
from app.lessons.front_matter import InvalidValue
from app.lessons.model import CellTag
from app.lessons.python_source import find_syntax_issue, same_code
from app.lessons.questions import SourceQuestion
from app.lessons.solution_marks import BEGIN, END, has_marks, split_marked_code
from app.lessons.yaml_with_lines import YamlValue

DEFAULT_SECONDS, MAX_SECONDS = 30, 300
DEFAULT_XP, MAX_XP = 20, 100
EXERCISE_KEYS = ("needs", "seconds", "xp", "review")
REVIEW = "manual"
"""The only value of the option ``review``."""
_OTHER_TAGS = (CellTag.remove_cell, CellTag.skip_execution, CellTag.raises_exception)
"""Tags of cells that can neither be an exercise nor run before one."""


class ExerciseCell(Protocol):
    """The part of a SourceCell that this module uses."""

    @property
    def name(self) -> str: ...
    @property
    def code(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def fence_line(self) -> int: ...
    @property
    def tags(self) -> frozenset[CellTag] | None: ...
    @property
    def expect(self) -> tuple[str, ...] | None: ...
    @property
    def needs(self) -> tuple[str, ...] | None: ...
    @property
    def seconds(self) -> int | None: ...
    @property
    def xp(self) -> int | None: ...
    @property
    def review(self) -> str | None: ...
    @property
    def option_lines(self) -> Mapping[str, int]: ...


@dataclass(frozen=True, slots=True)
class SourceTask:
    """An ``{exercise}`` or ``{solution}`` in a file. ``label`` is the name of its cell."""

    directive: Directive
    label: str
    title: Token | None
    prose: tuple[Token, ...]


def is_exercise(cell: ExerciseCell) -> bool:
    """Whether the cell is tagged as an exercise."""
    return CellTag.exercise in (cell.tags or ())


def read_task(tokens: Sequence[Token]) -> SourceTask:
    """Convert the tokens from ``task_open`` to ``task_close`` to a task."""
    directive: Directive = tokens[0].meta["directive"]
    body = tuple(tokens[4:-1] if directive.argument else tokens[1:-1])
    if directive.name == "solution":
        return SourceTask(directive, directive.argument, None, body)
    return SourceTask(directive, directive.option("label"), tokens[2] if directive.argument else None, body)


def parse_needs(value: YamlValue) -> tuple[str, ...]:
    """Parse the cells that an exercise needs. Raises InvalidValue."""
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InvalidValue("must be a list of cells; write it as [make-data, build-model]")
    names = [str(item) for item in value]
    for name in names:
        if names.count(name) > 1:
            raise InvalidValue(f"names the cell '{name[:40]}' twice; keep one")
    return tuple(names)


def parse_seconds(value: YamlValue) -> int:
    """Parse a time limit. Raises InvalidValue."""
    return _parse_whole_number(value, 1, MAX_SECONDS)


def parse_xp(value: YamlValue) -> int:
    """Parse the XP of an exercise. Raises InvalidValue."""
    return _parse_whole_number(value, 0, MAX_XP)


def parse_review(value: YamlValue) -> str:
    """Parse who reviews an exercise. Raises InvalidValue."""
    if value != REVIEW:
        raise InvalidValue(f"must be '{REVIEW}': instructors review the exercise after its checks; or remove it")
    return REVIEW


def _parse_whole_number(value: YamlValue, least: int, most: int) -> int:
    text = value if isinstance(value, str) else ""
    if not text.isascii() or not text.isdigit() or len(text) > 4 or not least <= int(text) <= most:
        raise InvalidValue(f"must be a whole number from {least} to {most}")
    return int(text)


# --- errors ----------------------------------------------------------------------------------------------------


def exercise_errors(cells: Sequence[ExerciseCell]) -> Iterator[LessonError]:
    """Yield errors in the exercises among the cells of an English lesson."""
    for number, cell in enumerate(cells):
        if is_exercise(cell):
            yield from _mark_errors(cell)
            yield from _needs_errors(cell, cells[:number], cells[number:])
            for tag in _OTHER_TAGS:
                if tag in (cell.tags or ()):
                    yield LessonError(cell.fence_line, f"an exercise cannot have the tag {tag}; remove one of the two")
        else:
            if has_marks(cell.code):
                text = f"'{cell.name}' has marks of a solution but is no exercise; add ':tags: [exercise]'"
                yield LessonError(cell.line, text)
            for key in EXERCISE_KEYS:
                if getattr(cell, key) is not None:
                    text = f"'{key}' is for exercises; add ':tags: [exercise]', or remove it"
                    yield LessonError(cell.option_lines.get(key, cell.fence_line), text)


def _mark_errors(cell: ExerciseCell) -> Iterator[LessonError]:
    marked, faults = split_marked_code(cell.code, cell.line)
    yield from faults
    if faults:
        return
    if not marked.regions:
        yield LessonError(cell.line, f"the exercise '{cell.name}' marks no solution; put {BEGIN} and {END} around it")
        return
    issue = find_syntax_issue(marked.starter)
    if issue is not None and find_syntax_issue(marked.solution) is None:
        text = f"what learners get of '{cell.name}' is not Python: line {issue.line} of it: {issue.reason}"
        yield LessonError(cell.line, f"{text}; correct the lines that start with '#: '")
    if marked.starter.split() == marked.solution.split():
        yield LessonError(cell.line, f"learners get the solution of '{cell.name}'; change the lines that start with #:")


def _needs_errors(
    cell: ExerciseCell, before: Sequence[ExerciseCell], after: Sequence[ExerciseCell]
) -> Iterator[LessonError]:
    earlier = {other.name: other for other in before}
    for name in cell.needs or ():
        other = earlier.get(name)
        if name == cell.name:
            text = f"the exercise '{name}' needs itself; remove it from 'needs'"
        elif other is None and any(later.name == name for later in after):
            text = f"'{cell.name}' needs '{name}', which comes later; move that cell up, or need another one"
        elif other is None:
            known = f"use one of {', '.join(earlier)}" if earlier else "no cell comes before it"
            text = f"'{cell.name}' needs '{name[:40]}', which is not a cell; {known}"
        elif is_exercise(other):
            text = f"'{cell.name}' needs the exercise '{name}', which learners may not have solved; need other cells"
        elif any(tag in (other.tags or ()) for tag in _OTHER_TAGS[1:]):
            text = f"'{cell.name}' needs '{name}', which does not run to its end; need other cells"
        else:
            continue
        yield LessonError(cell.option_lines.get("needs", cell.fence_line), text)


def task_errors(tasks: Sequence[SourceTask], cells: Sequence[ExerciseCell]) -> Iterator[LessonError]:
    """Yield errors in ``{exercise}`` and ``{solution}``."""
    by_name = {cell.name: cell for cell in cells}
    exercises = ", ".join(cell.name for cell in cells if is_exercise(cell))
    known = f"use one of {exercises}" if exercises else "no cell has the tag exercise"
    seen: dict[tuple[str, str], int] = {}
    for task in tasks:
        kind, line = task.directive.name, task.directive.line
        if not task.label:
            if not task.directive.faults:
                yield LessonError(line, f"this {{{kind}}} names no cell; add ':label: name' with the exercise's cell")
            continue
        cell = by_name.get(task.label)
        if cell is None or not is_exercise(cell):
            text = f"{{{kind}}} is for '{task.label[:40]}', which is not an exercise; {known}"
            yield LessonError(line, text)
        elif kind == "exercise" and cell.fence_line < line:
            yield LessonError(line, f"{{exercise}} comes after its cell '{task.label}'; move it above the cell")
        first = seen.setdefault((kind, task.label), line)
        if first != line:
            yield LessonError(line, f"'{task.label}' already has an {{{kind}}} on line {first}; keep one")


def gate_errors(tokens: Sequence[Token], cells: Sequence[ExerciseCell]) -> Iterator[LessonError]:
    """Yield errors for ``{exercise}`` and ``{solution}`` that belong to no cell.

    In a lesson with exercises that are judged, they are mistakes: a misspelled solution would be on the page.
    """
    judged = ", ".join(cell.name for cell in cells if is_exercise(cell))
    gates = [token.meta["directive"] for token in tokens if token.type == "gate_open"]
    labels = {gate.label for gate in gates if gate.name.startswith("exercise")}
    for gate in gates:
        solution = gate.name.startswith("solution")
        name = gate.argument if solution else gate.option("label")
        if judged and not gate.name.endswith("-start"):
            text = f"{{{gate.name}}} is for '{name[:40]}', which is not an exercise; use one of {judged}"
            if not name and not gate.faults:
                text = f"this {{{gate.name}}} names no cell; add ':label: name' with the exercise's cell"
            if name or not gate.faults:
                yield LessonError(gate.line, text)
        elif solution and name and name not in labels:
            text = f"there is no exercise '{name[:40]}' in this lesson; correct the name, or remove the solution"
            yield lesson_warning(gate.line, text)


def prediction_errors(questions: Sequence[SourceQuestion], cells: Sequence[ExerciseCell]) -> Iterator[LessonError]:
    """Yield errors for predictions whose cell cannot answer them."""
    by_name = {cell.name: cell for cell in cells}
    for question in questions:
        if question.kind == "quiz" or not question.cell:
            continue
        cell = by_name.get(question.cell)
        what = f"'{question.name}' is answered by '{question.cell[:40]}'"
        if cell is None:
            text = f"{what}, which is not a cell; use one of {', '.join(by_name) or 'none'}"
        elif any(tag in (cell.tags or ()) for tag in (CellTag.skip_execution, CellTag.remove_cell)):
            text = f"{what}, which learners do not run; name another cell"
        elif cell.fence_line < question.line:
            text = f"{what}, which comes before it; move the {{predict}} above the cell"
        elif CellTag.raises_exception in (cell.tags or ()) and not question.source and not cell.expect:
            text = f"{what}, whose error has no name; add ':expect: ValueError' to the cell, with the error it raises"
        else:
            continue
        yield LessonError(question.option_line("cell"), text)


# --- translations ----------------------------------------------------------------------------------------------


def marks_differ(code: str, original: str) -> bool:
    """Whether a translated exercise differs from the English one in its marks, its starter or its solution."""
    mine, theirs = split_marked_code(code, 1)[0], split_marked_code(original, 1)[0]
    return (
        mine.regions != theirs.regions
        or not same_code(mine.starter, theirs.starter)
        or not same_code(mine.solution, theirs.solution)
    )


def task_translation_errors(tasks: Sequence[SourceTask], english: Sequence[SourceTask]) -> Iterator[LessonError]:
    """Yield errors for tasks that only one of the two languages has."""
    mine = {(task.directive.name, task.label): task for task in tasks}
    theirs = {(task.directive.name, task.label) for task in english}
    for key, task in mine.items():
        if key not in theirs and task.label:
            text = f"the English lesson has no {{{key[0]}}} for '{key[1]}'; add it there or remove it"
            yield LessonError(task.directive.line, text)
    for kind, label in sorted(theirs - mine.keys()):
        yield LessonError(1, f"the {{{kind}}} of '{label}' is missing; translate it from the English lesson")
