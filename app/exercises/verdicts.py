"""What the checks of a submission said, and what follows from it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from pydantic import TypeAdapter

from app.exercises.models import Verdict
from app.lessons.model import Exercise
from runners.wire.check_messages import fill
from runners.wire.protocol import CheckEvent, CheckOutcome, Outcome, submission_verdict

PENDING, PASSED, NOT_REACHED, FAULT = "pending", "passed", "not-reached", "fault"
"""Outcomes of a check that this package decides by. ``pending``: it has said nothing yet."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check of an exercise, and what it said. ``message`` has its values filled in."""

    name: str
    xp: int
    outcome: str = PENDING
    message: str = ""
    got: str | None = None
    wanted: str | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """The end of a judgement."""

    verdict: Verdict
    results: tuple[CheckResult, ...] = field(default_factory=tuple)

    @property
    def passed_checks(self) -> tuple[CheckResult, ...]:
        """The checks that are worth their XP, whatever became of the others."""
        return tuple(result for result in self.results if result.outcome == PASSED)


_ADAPTER = TypeAdapter(tuple[CheckResult, ...])


def pending_results(exercise: Exercise) -> tuple[CheckResult, ...]:
    """The checks of an exercise before any has said something."""
    return tuple(CheckResult(check.name, check.xp) for check in exercise.checks)


def dump_results(results: Sequence[CheckResult]) -> str:
    """Results as they are stored."""
    return _ADAPTER.dump_json(tuple(results)).decode()


def load_results(stored: str) -> tuple[CheckResult, ...]:
    """Results as ``dump_results`` wrote them."""
    return _ADAPTER.validate_json(stored)


def with_events(expected: Sequence[CheckResult], events: Iterable[CheckEvent]) -> tuple[CheckResult, ...]:
    """The expected checks with what was said of them. A check that passes and then does not has not passed.

    Events about other checks count for nothing.
    """
    results = {result.name: result for result in expected}
    for event in events:
        before = results.get(event.name)
        if before is None or before.outcome not in (PENDING, PASSED):
            continue
        message = fill(event.message, event.values)
        results[event.name] = replace(
            before, outcome=event.outcome, message=message, got=event.got, wanted=event.wanted
        )
    return tuple(results.values())


def decide(expected: Sequence[CheckResult], events: Iterable[CheckEvent], outcome: Outcome) -> Judged:
    """The verdict on a submission whose run has ended so.

    A submission has passed if the run ended ``ok`` and every expected check passed. Whatever is not the learner's doing
    is not held against them: see ``submission_verdict``. A run that ended ``ok`` and left out a check is a fault too.
    """
    results = with_events(expected, events)
    left_out = FAULT if outcome is Outcome.ok else NOT_REACHED
    outcomes = [left_out if result.outcome == PENDING else result.outcome for result in results]
    verdict = Verdict(submission_verdict(outcome, cast(list[CheckOutcome], outcomes)))
    reached = (replace(one, outcome=NOT_REACHED) if one.outcome == PENDING else one for one in results)
    return Judged(verdict, tuple(reached))
