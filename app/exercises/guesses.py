"""Guesses: parsed from a form, and compared with the result of a run. Pure.

Guesses and results have the same format: a number as Python writes it, the number of a choice from 0, or the numbers of
choices in order, separated by commas.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from app.exercises.errors import ChoiceMissing, InvalidGuess, OrderIncomplete
from app.lessons.model import Prediction

_DIGITS = r"\d{1,40}+"
_NUMBER = re.compile(
    rf"[-+]?(?:{_DIGITS}(?:_{_DIGITS}){{0,6}}+(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][-+]?{_DIGITS})?"
)
"""Learners choose the text that is searched: possessive and bounded repetitions keep the search time linear."""
_DECIMAL_COMMA = re.compile(r"[-+]?(?:0,\d{1,40}|\d{1,40}+,(?:\d{1,2}|\d{4,40}))")
"""As many languages write 2,5. Three digits may also be thousands, so they are refused, except those of 0,125."""
_RELATIVE_SLACK = 1e-9
"""Tolerance for rounding in the printed output."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a run, and how far a guess may be off."""

    value: str
    tolerance: float = 0.0

    def agrees(self, guess: str) -> bool:
        """Whether a guess is correct."""
        if self.value == guess:
            return True
        try:
            wanted, guessed = float(self.value), float(guess)
        except ValueError:
            return False
        return abs(wanted - guessed) <= self.tolerance + _RELATIVE_SLACK * abs(wanted)


def read_guess(prediction: Prediction, fields: Mapping[str, str]) -> str:
    """The guess in a form: the field ``guess``, ``choice``, or ``step-KEY`` for each step of an order.

    Raises:
        InvalidGuess, ChoiceMissing, OrderIncomplete: the form has no valid guess.
    """
    if prediction.kind == "number":
        return read_number(fields.get("guess", ""))
    if prediction.kind == "choice":
        chosen = fields.get("choice", "")
        if chosen not in map(str, range(len(prediction.choices))):
            raise ChoiceMissing(reason="")
        return chosen
    return _read_order(prediction, fields)


def read_number(text: str) -> str:
    """Convert a number typed by a person to Python's format. Raises InvalidGuess."""
    stripped = text.strip().replace("\N{MINUS SIGN}", "-").removesuffix("%").strip()
    if _DECIMAL_COMMA.fullmatch(stripped):
        stripped = stripped.replace(",", ".")
    try:
        if len(stripped) > 40 or not _NUMBER.fullmatch(stripped):
            raise InvalidGuess(reason="")
        number = float(stripped)
    except ValueError as e:
        raise InvalidGuess(reason="") from e
    if not math.isfinite(number):
        raise InvalidGuess(reason="")
    return write_number(number)


def write_number(number: float) -> str:
    """A number without a needless decimal point: 16, 0.5, 1e+20."""
    return str(int(number)) if number == int(number) and abs(number) < 1e15 else repr(number)


def result_of_run(prediction: Prediction, printed: str) -> Result | None:
    """The result in a run's printed output; None if the output does not contain it."""
    if prediction.kind == "order":
        return Result(",".join(map(str, range(len(prediction.choices)))))
    if prediction.kind == "choice":
        return _choice_result(prediction, printed)
    if prediction.source is None:
        number = prediction.answer
    else:
        pattern = re.escape(prediction.source).replace(re.escape("{number}"), f"({_NUMBER.pattern})")
        found = re.search(pattern if pattern[0] != "(" else rf"(?<!\d){pattern}", printed)
        number = float(found[1]) if found else None
    if number is None or not math.isfinite(number):
        return None
    return Result(write_number(number), _tolerance(prediction, number))


def _choice_result(prediction: Prediction, printed: str) -> Result | None:
    right = next((number for number, choice in enumerate(prediction.choices) if choice.correct), None)
    if right is None or (prediction.source is not None and prediction.source not in printed):
        return None
    return Result(str(right))


def _tolerance(prediction: Prediction, number: float) -> float:
    written = prediction.tolerance or "0"
    if written.endswith("%"):
        return abs(number) * float(written.removesuffix("%")) / 100
    return float(written)


def _read_order(prediction: Prediction, fields: Mapping[str, str]) -> str:
    places: dict[str, int] = {}
    for key, choice in prediction.shuffled:
        places[fields.get(f"step-{key}", "")] = prediction.choices.index(choice)
    expected = [str(number) for number in range(1, len(prediction.choices) + 1)]
    if sorted(places) != sorted(expected):
        raise OrderIncomplete(reason="")
    return ",".join(str(places[number]) for number in expected)
