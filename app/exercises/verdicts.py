"""The results of a submission's checks, and the verdict that follows from them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pydantic import TypeAdapter

from app.exercises.models import Verdict
from app.lessons.model import Exercise
from runners.wire.check_messages import fill
from runners.wire.protocol import CheckEvent, CheckOutcome, Outcome, ReachedLimit, submission_verdict

PENDING: Final = "pending"
PASSED: Final = "passed"
NOT_REACHED: Final = "not-reached"
FAULT: Final = "fault"
"""Outcomes of a check that this package uses. ``pending``: there is no result yet."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check. ``message`` has its values filled in."""

    name: str
    xp: int
    outcome: str = PENDING
    message: str = ""
    got: str | None = None
    wanted: str | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """The outcome of a judgement."""

    verdict: Verdict
    results: tuple[CheckResult, ...] = field(default_factory=tuple)

    @property
    def passed_checks(self) -> tuple[CheckResult, ...]:
        """The passed checks, which earn their XP whatever the others' results."""
        return tuple(result for result in self.results if result.outcome == PASSED)


_ADAPTER = TypeAdapter(tuple[CheckResult, ...])


def pending_results(exercise: Exercise) -> tuple[CheckResult, ...]:
    """The checks of an exercise, without results."""
    return tuple(CheckResult(check.name, check.xp) for check in exercise.checks)


def dump_results(results: Sequence[CheckResult]) -> str:
    """Results in the form in which they are stored."""
    return _ADAPTER.dump_json(tuple(results)).decode()


def load_results(stored: str) -> tuple[CheckResult, ...]:
    """Results as stored by ``dump_results``."""
    return _ADAPTER.validate_json(stored)


def with_events(expected: Sequence[CheckResult], events: Iterable[CheckEvent]) -> tuple[CheckResult, ...]:
    """The expected checks with the results in the events. A check that passes and then fails has not passed.

    Events about other checks are ignored.
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


def decide(
    expected: Sequence[CheckResult], events: Iterable[CheckEvent], outcome: Outcome, limit: ReachedLimit | None = None
) -> Judged:
    """The verdict on a submission whose run has ended with this outcome.

    A submission passes if the run ended ``ok`` and every expected check passed. What the learner did not cause is not
    held against them: see ``submission_verdict``. If a run ended ``ok`` but omitted a check, that is a fault, too, and
    a limit on what Lockstep stores (``limit``) loses the judgement.
    """
    said = list(events)
    results = with_events(expected, said)
    outcomes: list[CheckOutcome] = [event.outcome for event in said]
    if outcome is Outcome.ok and any(result.outcome == PENDING for result in results):
        outcomes.append(FAULT)
    stored = limit is not None and limit.name == "stored"
    verdict = Verdict.lost if stored else Verdict(submission_verdict(outcome, outcomes))
    reached = (replace(one, outcome=NOT_REACHED) if one.outcome == PENDING else one for one in results)
    return Judged(verdict, tuple(reached))
