"""How often a learner's editor may ask a kernel."""

from __future__ import annotations

import pytest

from app.runs import introspection
from app.runs.errors import TooManyQuestions
from app.runs.introspection import QuestionLimiter


def test_many_questions_at_once_are_refused_until_some_seconds_have_passed() -> None:
    limiter = QuestionLimiter()
    for _ in range(40):
        limiter.admit("a", 0)
    with pytest.raises(TooManyQuestions):
        limiter.admit("a", 0.1)
    limiter.admit("b", 0.1)
    for _ in range(6):
        limiter.admit("a", 1.3)
    with pytest.raises(TooManyQuestions):
        limiter.admit("a", 1.3)


def test_only_the_latest_learners_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(introspection, "_MOST_LEARNERS", 2)
    limiter = QuestionLimiter()
    for learner in "abc":
        limiter.admit(learner, 0)
    assert list(limiter._seen) == ["b", "c"]
