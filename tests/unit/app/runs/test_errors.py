"""Refusals by the supervisor are shown in the learner's language if there is a translation."""

from __future__ import annotations

import pytest

from app import i18n
from app.errors import LockstepError
from app.runs.errors import AllSessionsBusy, ExecutionDisabled, RunRefused, ServerFull, SessionQueueFull, refusal_error
from runners.wire.protocol import LimitName, ReachedLimit, Refusal


@pytest.mark.parametrize(
    ("name", "kind"),
    [("sessions_per_learner", AllSessionsBusy), ("runs_per_session", SessionQueueFull), ("sessions", ServerFull)],
)
def test_a_refusal_for_a_limit_is_said_in_our_own_words_with_its_value(
    name: LimitName, kind: type[LockstepError]
) -> None:
    limit = ReachedLimit(name=name, value=3, unit="count")
    problem = refusal_error(429, Refusal(code="too-many", message="all of your 3 sessions are busy", limit=limit))

    assert isinstance(problem, kind)
    assert problem.status == 429
    with i18n.use_language("ko"):
        assert "sessions" not in problem.localized_message()
        assert "3" in problem.localized_message()


def test_a_server_that_cannot_run_code_safely_says_so_in_our_own_words() -> None:
    problem = refusal_error(403, Refusal(code="unsafe", message="no seccomp"))

    assert isinstance(problem, ExecutionDisabled)
    assert problem.status == 403


def test_a_refusal_we_do_not_know_keeps_its_status_and_its_reason() -> None:
    problem = refusal_error(422, Refusal(code="something-new", message="for {a} reason"))

    assert isinstance(problem, RunRefused)
    assert problem.status == 422
    assert "for {a} reason" in problem.localized_message()
