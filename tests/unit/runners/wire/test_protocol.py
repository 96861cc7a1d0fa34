"""A judgement on the wire, and the meaning of its end."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from runners.wire.protocol import (
    MAX_CODE_BYTES,
    CheckOutcome,
    Judgement,
    Outcome,
    RunRequest,
    SessionSpec,
    SubmissionVerdict,
    submission_verdict,
)


def test_a_request_carries_its_judgement() -> None:
    judgement = Judgement(exercise="loss", needs=({"name": "data", "code": "x = 1"},), solution="", checks="")
    request = RunRequest(id="r", session="r", spec=SessionSpec(owner="ada"), code="", judgement=judgement)
    assert RunRequest.model_validate_json(request.model_dump_json()) == request


@pytest.mark.parametrize("field", ["solution", "checks"])
def test_its_parts_are_bounded(field: str) -> None:
    fields = {"exercise": "loss", "solution": "", "checks": "", field: "x" * (MAX_CODE_BYTES + 1)}
    with pytest.raises(ValidationError, match="the limit is"):
        Judgement.model_validate(fields)


@pytest.mark.parametrize(
    ("outcome", "checks", "verdict"),
    [
        (Outcome.ok, ["passed", "passed"], "passed"),
        (Outcome.ok, ["passed", "failed"], "failed"),
        (Outcome.ok, ["too-slow", "not-reached"], "failed"),
        (Outcome.error, ["passed"], "failed"),
        (Outcome.memory, ["not-reached"], "failed"),
        (Outcome.ok, ["passed", "fault"], "fault"),
        (Outcome.error, ["failed", "fault"], "fault"),
        (Outcome.ok, [], "fault"),
        (Outcome.crash, [], "fault"),
        (Outcome.lost, ["passed"], "lost"),
        (Outcome.interrupted, ["failed"], "lost"),
    ],
)
def test_only_what_the_submission_did_is_a_failed_try(
    outcome: Outcome, checks: list[CheckOutcome], verdict: SubmissionVerdict
) -> None:
    assert submission_verdict(outcome, checks) == verdict
