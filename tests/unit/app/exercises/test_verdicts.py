"""What follows from the results of checks."""

from __future__ import annotations

from typing import Any

import pytest

from app.exercises.models import Verdict
from app.exercises.verdicts import CheckResult, decide, dump_results, load_results, with_events
from runners.wire.protocol import CheckEvent, Outcome, ReachedLimit

EXPECTED = (CheckResult("a", 10), CheckResult("b", 5))


def said(name: str, outcome: Any = "passed", **more: Any) -> CheckEvent:
    return CheckEvent(seq=1, at_ms=0, name=name, outcome=outcome, **more)


def test_a_submission_passes_if_every_check_does_and_the_run_ended_well() -> None:
    judged = decide(EXPECTED, [said("a"), said("b")], Outcome.ok)

    assert judged.verdict is Verdict.passed
    assert judged.passed_checks == judged.results


@pytest.mark.parametrize("outcome", ["failed", "error", "not-reached", "too-slow"])
def test_a_check_that_does_not_pass_fails_the_submission_but_not_the_other_check(outcome: str) -> None:
    judged = decide(EXPECTED, [said("a"), said("b", outcome)], Outcome.ok)

    assert judged.verdict is Verdict.failed
    assert [check.name for check in judged.passed_checks] == ["a"]


@pytest.mark.parametrize("outcome", [Outcome.error, Outcome.timeout, Outcome.memory, Outcome.crash, Outcome.output])
def test_a_run_that_ends_badly_never_passes_whatever_checks_said(outcome: Outcome) -> None:
    judged = decide(EXPECTED, [said("a"), said("b")], outcome)

    assert judged.verdict is Verdict.failed


@pytest.mark.parametrize("outcome", [Outcome.interrupted, Outcome.lost])
def test_a_judgement_that_was_stopped_or_lost_is_no_try(outcome: Outcome) -> None:
    assert decide(EXPECTED, [said("a", "failed")], outcome).verdict is Verdict.lost
    assert decide(EXPECTED, [], outcome).verdict is Verdict.lost


@pytest.mark.parametrize(
    "events", [[said("a"), said("b", "fault")], [said("a")], [], [said("a", "failed")], [said("another")]]
)
def test_a_check_that_failed_itself_or_said_nothing_in_a_good_run_is_our_fault(events: list[CheckEvent]) -> None:
    assert decide(EXPECTED, events, Outcome.ok).verdict is Verdict.fault


def test_what_was_not_reached_is_called_so() -> None:
    results = decide(EXPECTED, [], Outcome.error).results

    assert [result.outcome for result in results] == ["not-reached", "not-reached"]


def test_a_check_that_fails_once_cannot_pass_later() -> None:
    assert [one.outcome for one in with_events(EXPECTED, [said("a", "failed"), said("a"), said("b")])] == [
        "failed",
        "passed",
    ]
    assert with_events(EXPECTED, [said("a"), said("a", "failed")])[0].outcome == "failed"


def test_events_about_checks_that_the_exercise_does_not_have_count_for_nothing() -> None:
    results = with_events(EXPECTED, [said("c"), said("c", "failed")])

    assert [(result.name, result.outcome) for result in results] == [("a", "pending"), ("b", "pending")]


def test_messages_are_filled_in_and_other_braces_stay() -> None:
    event = said("a", "failed", message="{x} of {y} {}", values={"x": "1"}, got="[1]", wanted="[2]")

    result = with_events(EXPECTED, [event])[0]

    assert result.message == "1 of {y} {}"
    assert (result.got, result.wanted) == ("[1]", "[2]")


def test_results_are_read_as_they_were_written() -> None:
    results = (CheckResult("a", 10, "failed", "한국어", "[1]", None),)

    assert load_results(dump_results(results)) == results


def test_a_crash_with_a_fault_of_the_judge_is_no_failed_try() -> None:
    assert decide(EXPECTED, [said("", "fault")], Outcome.crash).verdict is Verdict.fault
    assert decide(EXPECTED, [said("a"), said("", "fault")], Outcome.timeout).verdict is Verdict.fault


def test_a_limit_on_what_lockstep_stores_loses_the_judgement() -> None:
    limit = ReachedLimit(name="stored", value=1, unit="bytes")

    assert decide(EXPECTED, [said("a", "failed")], Outcome.output, limit).verdict is Verdict.lost
