"""Messages about checks are filled in without trusting the values or the templates."""

import pytest

from runners.wire.check_messages import MESSAGES, fill, is_filled, without_values


def test_names_in_braces_are_filled_and_other_braces_stay() -> None:
    values = {"got": "{wanted}", "name": "f"}
    assert fill("{name} gave {got}, {unknown}, {0}, {got.__class__}, {got!r}", values) == (
        "f gave {wanted}, {unknown}, {0}, {got.__class__}, {got!r}"
    )


def test_each_sentence_is_there_once() -> None:
    assert len(set(MESSAGES)) == len(MESSAGES)


@pytest.mark.parametrize(
    ("message", "template", "same"),
    [
        ("It is 3.", "It is {got}.", True),
        ("It is {got}.", "It is {got}.", True),
        ("3 of 4, not 5", "{got} of {all}, not {wanted}", True),
        ("It is 3", "It is {got}.", False),
        ("3 of 4", "{got} of {all}, not {wanted}", False),
        ("aba", "ab{x}ba", False),
        ("exactly", "exactly", True),
        ("exactly so", "exactly", False),
    ],
)
def test_a_message_is_compared_with_a_sentence_apart_from_its_values(message: str, template: str, same: bool) -> None:
    assert is_filled(message, template) is same
    assert without_values("{got} of {all}") == "… of …"
