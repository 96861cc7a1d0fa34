"""What the supervisor declines is said in the learner's language where we have words for it."""

from __future__ import annotations

import pytest

from app import i18n
from app.errors import Problem
from app.runs.errors import AllSessionsBusy, NodeFull, RunRefused, SessionFull, Unsafe, declined
from runners.protocol import Limit, LimitName, Refusal


@pytest.mark.parametrize(
    ("name", "kind"),
    [("sessions_per_learner", AllSessionsBusy), ("runs_per_session", SessionFull), ("sessions", NodeFull)],
)
def test_a_refusal_for_a_limit_is_said_in_our_own_words_with_its_value(name: LimitName, kind: type[Problem]) -> None:
    limit = Limit(name=name, value=3, unit="count")
    problem = declined(429, Refusal(code="too-many", message="all of your 3 sessions are busy", limit=limit))

    assert isinstance(problem, kind)
    assert problem.http_status == 429
    with i18n.speaking("ko"):
        assert "sessions" not in problem.sentence()
        assert "3" in problem.sentence()


def test_a_server_that_cannot_run_code_safely_says_so_in_our_own_words() -> None:
    problem = declined(403, Refusal(code="unsafe", message="no seccomp"))

    assert isinstance(problem, Unsafe)
    assert problem.http_status == 403


def test_a_refusal_we_do_not_know_keeps_its_status_and_its_reason() -> None:
    problem = declined(422, Refusal(code="something-new", message="for {a} reason"))

    assert isinstance(problem, RunRefused)
    assert problem.http_status == 422
    assert "for {a} reason" in problem.sentence()
