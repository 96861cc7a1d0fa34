"""Whether the checks of an exercise judge as its author means. Solution, starter, empty and wrong answers are tried."""

from __future__ import annotations

import ast
import re
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

from app.cli.submission_runner import JudgedSubmission, judge_submission
from app.lessons.errors import LessonFileError
from app.lessons.exercise_files import CHECKS_FILE
from app.lessons.model import Cell, Lesson
from app.lessons.python_source import without_magics
from runners.wire.check_messages import NOT_DEFINED
from runners.wire.client import RunnerClient

_EMPTY_RESULTS = ("None", "[]")
"""What the functions of an empty answer return. A check has to fail, not to raise, when it gets that."""
_FRAME = re.compile(rf'^  File "{CHECKS_FILE}", line (\d+), in (.+)$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Sample:
    """A submission whose verdict is known beforehand."""

    name: str
    """`solution`, `starter`, what an empty answer returns, or the name of a wrong answer's file."""
    code: str
    path: Path
    line: int
    passes: bool
    diagnosis: str = ""
    """What a message of a failed check has to contain."""


@dataclass(frozen=True, slots=True)
class JudgedSample:
    """How a sample was judged, and what is wrong with that."""

    sample: Sample
    judged: JudgedSubmission
    duration_s: float
    errors: tuple[LessonFileError, ...]


def samples_of(lesson: Lesson, cell: Cell) -> Iterator[Sample]:
    """Yield the samples of an exercise, and nothing for any other cell."""
    if cell.exercise is None:
        return
    yield Sample("solution", cell.exercise.solution, lesson.source_path, cell.line, True)
    yield Sample("starter", cell.code, lesson.source_path, cell.line, False)
    for result in _EMPTY_RESULTS:
        if code := empty_answer(cell.exercise.solution, result):
            yield Sample(f"answer {result}", code, lesson.source_path, cell.line, False)
    for answer in cell.exercise.wrong_answers:
        yield Sample(answer.path.name, answer.code, answer.path, 1, False, answer.diagnosis)


def empty_answer(solution: str, result: str) -> str:
    """The functions of a solution, all of which return ``result``; '' if it has none."""
    statements = ast.parse(without_magics(solution)[0]).body
    names = [one.name for one in statements if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return "\n".join(f"def {name}(*args, **kwargs): return {result}" for name in names)


async def judge_samples(client: RunnerClient, lesson: Lesson, cell: Cell) -> AsyncIterator[JudgedSample]:
    """Judge the samples of an exercise, one after another. A fault of a check is an error of the first that shows it.

    Raises:
        RunnerError: the runner declined, or does not answer.
    """
    known: set[int] = set()
    for sample in samples_of(lesson, cell):
        start = time.perf_counter()
        judged = await judge_submission(client, lesson, cell, sample.code)
        duration_s = time.perf_counter() - start
        faults = check_faults(judged)
        path = lesson.source_path.parent / CHECKS_FILE
        errors = [LessonFileError(path, line, text) for line, text in faults.items() if line not in known]
        known |= faults.keys()
        if not faults:
            sentences = sample_errors(sample, judged, cell)
            errors = [LessonFileError(sample.path, sample.line, sentence) for sentence in sentences]
        yield JudgedSample(sample, judged, duration_s, tuple(errors))


def check_faults(judged: JudgedSubmission) -> dict[int, str]:
    """What went wrong in the checks themselves, by line of their file. Pure."""
    faults: dict[int, str] = {}
    for check in judged.checks:
        frames = _FRAME.findall(check.detail) if check.outcome == "fault" else []
        if not frames:
            continue
        line, function = frames[-1]
        raised = check.detail.strip().splitlines()[-1].strip()[:300]
        error, _, text = raised.partition(": ")
        if error.endswith(".JudgingFailed"):
            sentence = f"the check {check.name!r} cannot judge: {text.rstrip('.')}; correct it, or the solution"
        elif function == "<module>":
            sentence = f"this raised {raised}; correct it"
        else:
            advice = "correct it, or pass the result to close or equal before you compute with it"
            sentence = f"the check {check.name!r} raised {raised}; {advice}"
        faults.setdefault(int(line), sentence)
    return faults


def sample_errors(sample: Sample, judged: JudgedSubmission, cell: Cell) -> list[str]:
    """What is wrong with how a sample was judged. Pure."""
    what = f"'{sample.name}'" if sample.name.endswith(".py") else f"the {sample.name} of '{cell.name}'"
    if judged.verdict not in ("passed", "failed"):
        return [f"{what} could not be judged: {_reason(judged)}"]
    if sample.passes:
        silent = [name for name in _check_names(cell) if name not in {check.name for check in judged.checks}]
        unjudged = [f"{what} was not judged by the check {name!r}" for name in silent]
        if judged.verdict == "passed":
            return unjudged
        text = f"{what} does not pass: {_reason(judged)}"
        if any(check.message == NOT_DEFINED for check in judged.checks):
            text = f"{text.rstrip('.')}; define it in the solution, or correct the name in {CHECKS_FILE}"
        return [*unjudged, text]
    if judged.verdict == "passed":
        stricter = (
            "make a check stricter, or the starter wrong" if sample.name == "starter" else "make a check stricter"
        )
        return [f"{what} passes every check; {stricter}"]
    if sample.diagnosis and not any(sample.diagnosis in message for message in _failed_messages(judged)):
        return [f"{what} gets another diagnosis than {sample.diagnosis!r}: {_reason(judged)}"]
    return []


def _check_names(cell: Cell) -> list[str]:
    return [check.name for check in cell.exercise.checks] if cell.exercise else []


def _failed_messages(judged: JudgedSubmission) -> list[str]:
    pairs = zip(judged.checks, judged.messages, strict=True)
    return [message for check, message in pairs if check.outcome != "passed"]


def _reason(judged: JudgedSubmission) -> str:
    """What the checks said, or else what ended the run."""
    said = [
        f"{check.name!r} {check.outcome}{f': {message}' if message and check.outcome != 'fault' else ''}"
        f"{_last_line(check.detail)}"
        for check, message in zip(judged.checks, judged.messages, strict=True)
        if check.outcome not in ("passed", "not-reached")
    ]
    raised = [f"{error.name}: {error.value[:300]}" for error in judged.errors[-1:]]
    return "; ".join([*said, *raised]) or f"it ended with '{judged.outcome}'"


def _last_line(detail: str) -> str:
    lines = detail.strip().splitlines()
    return f" ({lines[-1].strip()[:300]})" if lines else ""
