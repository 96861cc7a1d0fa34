"""Messages about checks are filled in without trusting the values or the templates."""

from runners.wire.check_messages import MESSAGES, fill


def test_names_in_braces_are_filled_and_other_braces_stay() -> None:
    values = {"got": "{wanted}", "name": "f"}
    assert fill("{name} gave {got}, {unknown}, {0}, {got.__class__}, {got!r}", values) == (
        "f gave {wanted}, {unknown}, {0}, {got.__class__}, {got!r}"
    )


def test_each_sentence_is_there_once() -> None:
    assert len(set(MESSAGES)) == len(MESSAGES)
