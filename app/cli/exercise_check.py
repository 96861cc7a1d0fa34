"""Whether the checks of an exercise judge as its author means: solution, starter, and wrong answers, each submitted."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

from app.cli.submission_runner import JudgedSubmission, judge_submission
from app.lessons.errors import LessonFileError
from app.lessons.model import Cell, Lesson
from runners.wire.client import RunnerClient


@dataclass(frozen=True, slots=True)
class Sample:
    """A submission whose verdict is known beforehand."""

    name: str
    """`solution`, `starter`, or the name of a wrong answer's file."""
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
    for answer in cell.exercise.wrong_answers:
        yield Sample(answer.path.name, answer.code, answer.path, 1, False, answer.diagnosis)


async def judge_samples(client: RunnerClient, lesson: Lesson, cell: Cell) -> AsyncIterator[JudgedSample]:
    """Judge the samples of an exercise, one after another.

    Raises:
        RunnerError: the runner declined, or does not answer.
    """
    for sample in samples_of(lesson, cell):
        start = time.perf_counter()
        judged = await judge_submission(client, lesson, cell, sample.code)
        duration_s = time.perf_counter() - start
        sentences = sample_errors(sample, judged, cell)
        errors = tuple(LessonFileError(sample.path, sample.line, sentence) for sentence in sentences)
        yield JudgedSample(sample, judged, duration_s, errors)


def sample_errors(sample: Sample, judged: JudgedSubmission, cell: Cell) -> list[str]:
    """What is wrong with how a sample was judged. Pure."""
    what = f"the {sample.name} of '{cell.name}'" if sample.name in ("solution", "starter") else f"'{sample.name}'"
    if judged.verdict not in ("passed", "failed"):
        return [f"{what} could not be judged: {_reason(judged)}"]
    if sample.passes:
        silent = [name for name in _check_names(cell) if name not in {check.name for check in judged.checks}]
        unjudged = [f"{what} was not judged by the check {name!r}" for name in silent]
        return unjudged if judged.verdict == "passed" else [*unjudged, f"{what} does not pass: {_reason(judged)}"]
    if judged.verdict == "passed":
        return [f"{what} passes every check; make a check stricter"]
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
        f"{check.name!r} {check.outcome}{f': {message}' if message else ''}{_last_line(check.detail)}"
        for check, message in zip(judged.checks, judged.messages, strict=True)
        if check.outcome not in ("passed", "not-reached")
    ]
    raised = [f"{error.name}: {error.value[:300]}" for error in judged.errors[-1:]]
    return "; ".join([*said, *raised]) or f"it ended with '{judged.outcome}'"


def _last_line(detail: str) -> str:
    lines = detail.strip().splitlines()
    return f" ({lines[-1].strip()[:300]})" if lines else ""
