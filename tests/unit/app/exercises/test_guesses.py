"""Guesses are read as people write them, and compared with what a run printed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from markupsafe import Markup

from app.errors import InvalidInput
from app.exercises.guesses import Result, read_guess, read_number, result_of_run
from app.lessons.model import Choice
from tests.factories.judged_lesson import PREDICTION


def _choice(text: str, *, correct: bool = False) -> Choice:
    return Choice(Markup(text), text, correct, Markup(""))


CHOICES = (_choice("a"), _choice("b", correct=True), _choice("c"))
CHOICE = replace(PREDICTION, kind="choice", source=None, choices=CHOICES)
ORDER = replace(PREDICTION, kind="order", source=None, choices=CHOICES)


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("16", "16"),
        (" 16.0 ", "16"),
        ("0.50", "0.5"),
        ("-3", "-3"),
        ("\N{MINUS SIGN}3", "-3"),
        ("1e3", "1000"),
        (".5", "0.5"),
        ("-20,7", "-20.7"),
        ("0,125", "0.125"),
    ],
)
def test_a_number_is_read_as_it_is_meant(typed: str, read: str) -> None:
    assert read_number(typed) == read


@pytest.mark.parametrize(
    "typed",
    ["", "x", "nan", "inf", "1e999", "1,500", "1,2,3", "1,5e3", ",", "1 2", "0x10", "1_", "1__2", "9" * 60, "１６px"],
)
def test_what_is_no_number_is_refused(typed: str) -> None:
    with pytest.raises(InvalidInput):
        read_number(typed)


@pytest.mark.parametrize("chosen", ["", "3", "-1", "x", "01"])
def test_a_choice_that_is_not_there_is_refused(chosen: str) -> None:
    with pytest.raises(InvalidInput):
        read_guess(CHOICE, {"choice": chosen})
    assert read_guess(CHOICE, {"choice": "2"}) == "2"


def test_an_order_is_read_by_its_keys_and_has_to_be_complete() -> None:
    keys = {choice.text: key for key, choice in ORDER.shuffled}
    places = {"b": "1", "a": "2", "c": "3"}

    assert read_guess(ORDER, {f"step-{keys[text]}": place for text, place in places.items()}) == "1,0,2"
    for wrong in ({"b": "1", "a": "1", "c": "3"}, {"b": "1"}, {"b": "1", "a": "2", "c": "4"}):
        with pytest.raises(InvalidInput):
            read_guess(ORDER, {f"step-{keys[text]}": place for text, place in wrong.items()})


def test_the_result_is_read_from_what_the_run_printed() -> None:
    assert result_of_run(PREDICTION, "replica 0 sees 16 of them\n") == Result("16")
    assert result_of_run(PREDICTION, "replica 0 sees none of them\n") is None
    assert result_of_run(replace(PREDICTION, source="(loss) {number}"), "(loss) 1.5e-3") == Result("0.0015")


@pytest.mark.parametrize(
    "printed", ["1" * 100_000, "1_" * 50_000, "1." * 50_000, "1e" * 50_000, "-" * 100_000, "sees 1__6", "²²"]
)
@pytest.mark.parametrize("source", ["sees {number} of them", "{number} of them"])
def test_a_printed_text_that_only_resembles_the_result_is_searched_in_linear_time(source: str, printed: str) -> None:
    """A pattern that backtracks needs minutes for 1,500 digits, in the process that serves all learners."""
    assert result_of_run(replace(PREDICTION, source=source), f"sees {printed}") is None


@pytest.mark.parametrize(
    ("source", "printed", "value"),
    [
        ("{number} images", "v2: 1_024 images", "1024"),
        ("took {number}. Done", "took 16. Done", "16"),
        ("layer2{number}", "layer27", "7"),
        ("x={number}s", "x=-1.5e-3s", "-0.0015"),
    ],
)
def test_a_number_is_found_in_any_notation(source: str, printed: str, value: str) -> None:
    result = result_of_run(replace(PREDICTION, source=source), printed)
    assert result is not None
    assert result.value == value


def test_a_number_that_the_lesson_names_needs_no_output() -> None:
    assert result_of_run(replace(PREDICTION, source=None, answer=64.0), "") == Result("64")


def test_a_choice_may_wait_for_a_text_that_decides() -> None:
    assert result_of_run(CHOICE, "") == Result("1")
    deciding = replace(CHOICE, source="all equal")
    assert result_of_run(deciding, "no") is None
    assert result_of_run(deciding, "yes, all equal") == Result("1")


def test_the_right_order_is_the_authors() -> None:
    assert result_of_run(ORDER, "") == Result("0,1,2")


@pytest.mark.parametrize(
    ("tolerance", "guess", "agrees"),
    [
        ("", "100", True),
        ("", "100.1", False),
        ("0.5", "100.5", True),
        ("0.5", "101", False),
        ("5%", "105", True),
        ("5%", "94", False),
    ],
)
def test_a_guess_may_differ_by_the_tolerance(tolerance: str, guess: str, agrees: bool) -> None:
    result = result_of_run(replace(PREDICTION, source=None, answer=100.0, tolerance=tolerance), "")

    assert result is not None
    assert result.agrees(guess) is agrees
