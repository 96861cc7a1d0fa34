"""Names of outcomes and of session states."""

from __future__ import annotations

import pytest

from app import i18n
from app.runs.pruning import DeletionReason
from app.runs.status_labels import notice_text, outcome_label, session_failure_text, session_label
from runners.wire.protocol import NoticeEvent, Outcome, SessionInfo, SessionState


def test_every_outcome_has_words_of_its_own() -> None:
    words = [outcome_label(outcome) for outcome in Outcome]

    assert len(set(words)) == len(Outcome)
    assert outcome_label(Outcome.lost) == "Lost: the runner restarted; run it again"


@pytest.mark.parametrize("state", SessionState)
def test_every_state_of_a_session_has_words(state: SessionState) -> None:
    assert session_label(SessionInfo(id="x", state=state, topology="cpu", keras=3))


def test_a_queued_session_says_its_position() -> None:
    info = SessionInfo(id="x", state=SessionState.queued, topology="cpu", keras=3, position=7)

    assert session_label(info) == "Waiting for a free slot: position 7"


@pytest.mark.parametrize(("wait_s", "words"), [(3, "less than 10 s"), (23, "about 20 s"), (130, "about 2 min")])
def test_a_queued_session_says_about_how_long_it_waits_where_that_is_known(wait_s: float, words: str) -> None:
    info = SessionInfo(id="x", state=SessionState.queued, topology="cpu", keras=3, position=7, wait_s=wait_s)

    assert session_label(info) == f"Waiting for a free slot: position 7, {words}"


@pytest.mark.parametrize(
    "reason", ["idle", "evicted", "replaced", "ended", "failed", "supervisor-stopped", "something new", None]
)
def test_a_session_that_is_gone_says_that_the_next_run_starts_another(reason: str | None) -> None:
    info = SessionInfo(id="x", state=SessionState.gone, topology="cpu", keras=3, gone_because=reason)

    assert "next run starts" in session_label(info)


def test_a_session_that_lockstep_could_not_keep_up_is_no_crash_of_python() -> None:
    info = SessionInfo(id="x", state=SessionState.gone, topology="cpu", keras=3, gone_because="failed")

    assert "Python crashed" not in session_label(info)


@pytest.mark.parametrize("reason", ["no-sandbox", "no-kernel", "sandbox-gone", "internal", "something new"])
def test_every_reason_for_a_failed_session_has_words(reason: str) -> None:
    assert session_failure_text(reason).endswith(".")


@pytest.mark.parametrize("language", i18n.LANGUAGE_CODES)
@pytest.mark.parametrize("reason", DeletionReason)
def test_a_notice_says_why_and_what_to_do_in_every_language(reason: DeletionReason, language: str) -> None:
    notice = NoticeEvent(seq=1, at_ms=0, code=reason, values={"days": 90}, text="English")
    with i18n.use_language(language):
        words = notice_text(notice)
    assert ("90" in words) == (reason is DeletionReason.age)
    assert words != "English"
    assert words.isascii() == (language == "en")


def test_other_notices_keep_their_own_words() -> None:
    assert notice_text(NoticeEvent(seq=1, at_ms=0, code="session-failed", text="It failed.")) == "It failed."
