"""The runner's own sentences about checks are exactly the translated ones."""

from __future__ import annotations

from app.exercises.check_sentences import SENTENCES, check_sentence
from app.i18n import use_language
from runners.wire.check_messages import MESSAGES


def test_every_sentence_of_the_runner_is_translated() -> None:
    assert set(SENTENCES) == set(MESSAGES)


def test_an_authors_sentence_stays_as_it_is() -> None:
    with use_language("ko"):
        assert check_sentence("An author's own.") == "An author's own."
