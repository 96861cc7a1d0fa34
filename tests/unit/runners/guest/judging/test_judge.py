"""The judge is stepped from outside, and reads answers that may be anything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from runners.checks.plain_data import encode
from runners.guest.judging import judge
from runners.guest.reporting import publisher
from runners.wire import check_messages as messages
from runners.wire.judging import JudgeStep
from runners.wire.reports import ANSWER

CHECKS = """
from runners.checks import check, equal
@check("task", "first")
def first(work):
    equal(work.call("f", 1), 2)
@check("task", "second")
def second(work):
    equal(work.output, "hello")
@check("other", "of another exercise")
def third(work): pass
"""


class Steps:
    """What the judge says, step by step."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def take(self, kind: str, content: dict[str, Any], lane: str | None) -> None:
        self.texts.append(content["data"][ANSWER])

    def begin(self, checks: str = CHECKS, **more: Any) -> JudgeStep:
        task = {"exercise": "task", "checks": checks, "source": "x = 1", "output": "hello", "seed": 7}
        judge.begin(json.dumps(task | more))
        return JudgeStep.model_validate_json(self.texts[-1])

    def resume(self, **answer: Any) -> JudgeStep:
        judge.resume(json.dumps({"outcome": "ok", "seconds": 5, "answers": [], **answer}))
        return JudgeStep.model_validate_json(self.texts[-1])


@pytest.fixture
def steps() -> Iterator[Steps]:
    steps = Steps()
    publisher.set_sink(steps.take)
    yield steps
    publisher.set_sink(None)


def test_each_question_ends_a_step_and_results_come_with_the_next(steps: Steps) -> None:
    step = steps.begin()
    assert step.names == ("first", "second")
    assert step.request
    assert (step.request.sandbox, json.loads(step.request.do)["name"]) == ("submission", "f")
    step = steps.resume(answers=[json.dumps({"value": encode(2)})])
    assert [(result.name, result.outcome) for result in step.results] == [("first", "passed"), ("second", "passed")]
    assert step.request is None


def test_nothing_runs_for_a_submission_that_was_not_reached(steps: Steps) -> None:
    step = steps.begin(reached=False)
    assert [result.outcome for result in step.results] == ["not-reached", "not-reached"]


@pytest.mark.parametrize(
    ("answer", "outcome", "message"),
    [
        ({"answers": [json.dumps({"value": encode(3)})]}, "failed", messages.DIFFERENT),
        ({"answers": ["nonsense"]}, "error", messages.NOT_PLAIN),
        ({"answers": ["[" * 9999]}, "error", messages.NOT_PLAIN),
        ({"answers": [json.dumps({"value": "[" * 9999})]}, "error", messages.NOT_PLAIN),
        ({"answers": [json.dumps({"failed": "mine", "values": {}})]}, "error", messages.NOT_PLAIN),
        ({"answers": [json.dumps({"failed": messages.FAULT, "values": {}})]}, "error", messages.NOT_PLAIN),
        ({"answers": [json.dumps({"failed": messages.NOT_DEFINED, "values": {"name": "f"}})]}, "error", "defines no"),
        ({"answers": [None], "outcome": "memory"}, "error", messages.ENDED),
        ({"answers": [None], "outcome": "output"}, "error", messages.PRINTED_TOO_MUCH),
        ({"answers": [None], "outcome": "timeout"}, "too-slow", messages.TOO_SLOW),
        ({"outcome": "not-reached"}, "not-reached", messages.NOT_REACHED),
        ({"fault": "the reference ended"}, "fault", messages.FAULT),
    ],
)
def test_every_answer_has_an_outcome(steps: Steps, answer: dict[str, Any], outcome: str, message: str) -> None:
    steps.begin()
    step = steps.resume(**answer)
    assert step.results[0].outcome == outcome
    assert message in step.results[0].message


def test_a_worker_of_a_submission_that_was_not_reached_has_no_result(steps: Steps) -> None:
    checks = """
from runners.checks import check
@check("task", "No record is read twice")
def once(work):
    read = [record for share in work.per_task("records") for record in share]
    assert len(read) == len(set(read))
"""
    steps.begin(checks)
    assert steps.resume(outcome="not-reached").results[0].outcome == "not-reached"


@pytest.mark.parametrize("ask", ["call", "per_task"])
@pytest.mark.parametrize(
    ("errors", "shown"),
    [
        (["CancelledError", "NotFoundError"], "NotFoundError"),
        (["CancelledError", None], "CancelledError"),
        (["CancelledError", "CancelledError"], "CancelledError"),
        (["ValueError", "NotFoundError"], "ValueError"),
    ],
)
def test_the_error_that_kept_other_workers_waiting_is_shown(
    steps: Steps, ask: str, errors: list[str | None], shown: str
) -> None:
    steps.begin(f"from runners.checks import check\n@check('task', 'It trains')\ndef trains(work): work.{ask}('train')")
    answers = [
        error and json.dumps({"failed": messages.RAISED, "values": {"error": error, "text": "why"}}) for error in errors
    ]
    (result,) = steps.resume(answers=answers).results

    assert (result.outcome, result.message, result.values["error"]) == ("error", messages.RAISED, shown)


VALUE = json.dumps({"value": encode(7)})
RAISED = json.dumps({"failed": messages.RAISED, "values": {"error": "ValueError", "text": "no step"}})


@pytest.mark.parametrize(
    ("answer", "outcome", "message"),
    [
        ({"answers": [VALUE], "killed": True}, "passed", ""),
        ({"answers": [None], "outcome": "crash", "killed": True}, "passed", ""),
        ({"answers": [VALUE], "killed": False, "of_killed": VALUE}, "error", messages.NOT_AT_STEP),
        ({"answers": [VALUE], "killed": False, "of_killed": RAISED}, "error", messages.RAISED),
        ({"answers": [None], "outcome": "crash", "killed": False}, "error", messages.ENDED),
        ({"outcome": "not-reached"}, "not-reached", messages.NOT_REACHED),
    ],
    ids=["survived", "ended by it", "never at the step", "failed before it", "ended before it", "not reached"],
)
def test_a_call_may_fail_only_if_its_process_was_killed(
    steps: Steps, answer: dict[str, Any], outcome: str, message: str
) -> None:
    checks = """
from runners.checks import check
@check("task", "It survives")
def survives(work):
    assert work.call("train", kill="worker 1", at_step=5) in (None, 7)
"""
    request = steps.begin(checks).request
    assert request
    assert (request.kill, request.at_step) == ("worker 1", 5)
    (result,) = steps.resume(**answer).results
    assert (result.outcome, result.message) == (outcome, message)


def test_texts_of_a_submission_are_made_presentable_and_short(steps: Steps) -> None:
    steps.begin()
    long = {"error": "x" * 1_000_000, "text": "\ud800\0", **{str(n): "y" for n in range(1000)}}
    step = steps.resume(answers=[json.dumps({"failed": messages.RAISED, "values": long})])
    values = step.results[0].values
    assert len(values) <= 20
    assert len(values["error"]) < 4000
    assert values["text"] == "?␀"


@pytest.mark.parametrize(
    ("checks", "why"), [("def", "SyntaxError"), ("1/0", "ZeroDivisionError"), ("x = 1", "has no check of task")]
)
def test_broken_checks_are_a_fault_with_the_reason(steps: Steps, checks: str, why: str) -> None:
    assert why in steps.begin(checks).fault


def test_a_submission_that_cannot_be_parsed_is_its_own_error(steps: Steps) -> None:
    checks = 'from runners.checks import check\n@check("task", "a")\ndef a(work): work.tree'
    step = steps.begin(checks, source="(" * 500 + ")" * 500)
    assert [(result.outcome, result.message) for result in step.results] == [("error", messages.RAISED)]
    assert steps.begin(checks, source="%matplotlib inline\n!ls\nif True:\n    %time 1").results[0].outcome == "passed"


@pytest.mark.parametrize(
    ("source", "message"),
    [("%time x = 1", messages.BACK_DOOR), ("x = 3 if True else (\n    20\n    % 7\n)", "")],
    ids=["a magic", "a line that goes on"],
)
def test_a_magic_may_change_what_is_given_and_a_percent_sign_may_not(steps: Steps, source: str, message: str) -> None:
    checks = 'from runners.checks import check, untouched\n@check("task", "a")\ndef a(work): untouched(work, "given")'
    assert [result.message for result in steps.begin(checks, source=source).results] == [message]


@pytest.mark.parametrize(("own", "answers"), [([], 2), ([1.0], 2), ([1.0, 2.0, 3.0], 2)])
def test_arguments_for_another_number_of_workers_are_a_fault(steps: Steps, own: list[float], answers: int) -> None:
    checks = f'from runners.checks import check\n@check("task", "a")\ndef a(work): work.per_task("f", own={own})'
    steps.begin(checks)
    (result,) = steps.resume(answers=[json.dumps({"value": encode(1.0)})] * answers).results
    assert result.outcome == "fault"
    assert "2 workers" in result.detail


def test_arguments_of_workers_may_be_an_array(steps: Steps) -> None:
    lines = 'import numpy as np\nfrom runners.checks import check, equal\n@check("task", "a")\ndef a(work): '
    steps.begin(lines + 'equal(work.per_task("f", own=np.ones(2)), [1.0, 1.0])')
    step = steps.resume(answers=[json.dumps({"value": encode(1.0)})] * 2)
    assert [result.outcome for result in step.results] == ["passed"]
