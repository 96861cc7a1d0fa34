"""Guesses: read from a form, compared with what a run showed. Pure.

A guess and a result are written alike: a number as Python writes it, the number of a choice from 0, or the numbers of
choices in order, with commas.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from app.exercises.errors import ChoiceMissing, InvalidGuess, OrderIncomplete
from app.lessons.model import Prediction

_NUMBER = re.compile(r"[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_RELATIVE_SLACK = 1e-9
"""Numbers are compared as a program prints them, not bit by bit."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a run showed, and by how much a guess may differ from it."""

    value: str
    tolerance: float = 0.0

    def agrees(self, guess: str) -> bool:
        """Whether a guess is right."""
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
        InvalidGuess, ChoiceMissing, OrderIncomplete: there is none.
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
    """A number as a person writes it, as Python writes it. Raises InvalidGuess."""
    stripped = text.strip().replace("\N{MINUS SIGN}", "-").removesuffix("%").strip()
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
    """A number without a point that says nothing: 16, 0.5, 1e+20."""
    return str(int(number)) if number == int(number) and abs(number) < 1e15 else repr(number)


def result_of_run(prediction: Prediction, printed: str) -> Result | None:
    """What a run showed that printed this; None if the printed text does not tell."""
    if prediction.kind == "order":
        return Result(",".join(map(str, range(len(prediction.choices)))))
    if prediction.kind == "choice":
        return _choice_result(prediction, printed)
    if prediction.source is None:
        number = prediction.answer
    else:
        pattern = re.escape(prediction.source).replace(re.escape("{number}"), f"({_NUMBER.pattern})")
        found = re.search(pattern, printed)
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
