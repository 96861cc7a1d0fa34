"""The diagnoses of an exercise: what its author lets a check say about a mistake, whatever the values. Pure.

Messages are stored as the learner read them, with their values and in the learner's language. To count the learners who
made a mistake, a message is traced back to the author's sentence.
"""

from __future__ import annotations

from functools import lru_cache

from app.lessons.checks_file import parse_checks
from app.lessons.model import Exercise
from runners.wire.check_messages import is_filled, without_values

_MAX_SOURCES = 256


def find_diagnosis(message: str, judged: Exercise) -> str:
    """The author's sentence, in English, that this message was made of; empty if there is none in ``checks.py``.

    ``judged`` is the exercise in the language of the message.
    """
    found = [
        sentence
        for sentence in _sentences(judged.checks_source)
        if is_filled(message, judged.translations.get(sentence, sentence))
    ]
    return max(found, key=lambda sentence: len(without_values(sentence)), default="")


def diagnosis_title(diagnosis: str, read: Exercise) -> str:
    """A diagnosis without values and without a period. ``read`` is the exercise in the language of the reader."""
    return without_values(read.translations.get(diagnosis, diagnosis)).rstrip(".。")


@lru_cache(maxsize=_MAX_SOURCES)
def _sentences(source: str) -> tuple[str, ...]:
    """The literal sentences of a ``checks.py`` that have words besides their values."""
    return tuple(one for one in parse_checks(source).sentences if any(map(str.isalnum, without_values(one))))
