"""What the supervisor declines is said in the learner's language where we have words for it."""

from __future__ import annotations

import pytest

from app import i18n
from app.errors import Problem
from app.runs.errors import AllSessionsBusy, RunRefused, SessionFull, Unsafe, declined
from runners.protocol import Refusal


@pytest.mark.parametrize(
    ("code", "kind", "status"),
    [("too-many-sessions", AllSessionsBusy, 429), ("too-many-runs", SessionFull, 429), ("unsafe", Unsafe, 403)],
)
def test_a_refusal_we_know_is_said_in_our_own_words(code: str, kind: type[Problem], status: int) -> None:
    problem = declined(status, Refusal(code=code, message="all of your 3 sessions are busy"))

    assert isinstance(problem, kind)
    assert problem.http_status == status
    with i18n.speaking("ko"):
        assert "sessions" not in problem.sentence()


def test_a_refusal_we_do_not_know_keeps_its_status_and_its_reason() -> None:
    problem = declined(422, Refusal(code="something-new", message="for {a} reason"))

    assert isinstance(problem, RunRefused)
    assert problem.http_status == 422
    assert "for {a} reason" in problem.sentence()
