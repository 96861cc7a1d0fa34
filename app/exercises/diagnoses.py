"""The diagnoses of an exercise: what its author lets a check say about a mistake, whatever the values. Pure.

Messages are stored as the learner read them, with their values and in the learner's language. To count the learners who
made a mistake, a message is traced back to the author's sentence.
"""

from __future__ import annotations

from app.lessons.model import Exercise
from runners.wire.check_messages import is_filled, without_values


def find_diagnosis(message: str, judged: Exercise) -> str:
    """The author's sentence, in English, that this message was made of; empty if there is none in ``checks.py``.

    ``judged`` is the exercise in the language of the message.
    """
    found = [
        sentence
        for sentence in judged.sentences
        if _has_words(sentence) and is_filled(message, judged.translations.get(sentence, sentence))
    ]
    return max(found, key=lambda sentence: len(without_values(sentence)), default="")


def diagnosis_title(diagnosis: str, read: Exercise) -> str:
    """A diagnosis without values and without a period. ``read`` is the exercise in the language of the reader."""
    return without_values(read.translations.get(diagnosis, diagnosis)).rstrip(".。")


def _has_words(sentence: str) -> bool:
    """Whether there are words besides the values, which may be all that another message consists of."""
    return any(map(str.isalnum, without_values(sentence)))
