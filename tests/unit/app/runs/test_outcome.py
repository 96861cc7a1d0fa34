"""Words for outcomes and sessions."""

from __future__ import annotations

import pytest

from app.runs.outcome import outcome_words, session_words
from runners.protocol import Outcome, SessionInfo, SessionState


def test_every_outcome_has_words_of_its_own() -> None:
    words = [outcome_words(outcome) for outcome in Outcome]

    assert len(set(words)) == len(Outcome)
    assert outcome_words(Outcome.lost) == "Lost: the runner restarted; run it again"


@pytest.mark.parametrize("state", SessionState)
def test_every_state_of_a_session_has_words(state: SessionState) -> None:
    assert session_words(SessionInfo(id="x", state=state, topology="cpu", keras=3))


def test_a_queued_session_says_its_position() -> None:
    info = SessionInfo(id="x", state=SessionState.queued, topology="cpu", keras=3, position=7)

    assert session_words(info) == "Waiting for a free place: position 7"


@pytest.mark.parametrize("reason", ["idle", "ended", "crash", "memory", "something new", None])
def test_a_session_that_is_gone_says_that_the_next_run_starts_another(reason: str | None) -> None:
    info = SessionInfo(id="x", state=SessionState.gone, topology="cpu", keras=3, gone_because=reason)

    assert "next run starts" in session_words(info)
