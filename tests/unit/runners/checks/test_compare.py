"""Results are compared by structure, shape and value, and a sentence says what differs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from runners.checks import CheckFailed, close, equal, fail
from runners.checks.compare import describe
from runners.wire import check_messages as messages


def message_of(got: Any, wanted: Any, **options: Any) -> str:
    with pytest.raises(CheckFailed) as caught:
        close(got, wanted, **options)
    return caught.value.message


@pytest.mark.parametrize(
    ("got", "wanted"),
    [
        (1.00001, 1),
        (np.array([1, 2], np.float32), np.array([1.0, 2.0])),
        ([1, 2.00001], np.array([1.0, 2.0])),
        (np.array([1, 2]), [1, 2]),
        ([np.ones(2), "text", None], (np.ones(2), "text", None)),
        ({"a": 1 + 1e-9j}, {"a": 1}),
        (float("inf"), float("inf")),
    ],
)
def test_what_is_close_enough_passes(got: Any, wanted: Any) -> None:
    close(got, wanted)


@pytest.mark.parametrize(
    ("got", "wanted", "message"),
    [
        (1.1, 1, messages.DIFFERENT),
        (float("nan"), 1.0, messages.NOT_A_NUMBER),
        (float("inf"), 1.0, messages.NOT_A_NUMBER),
        (np.ones((2, 1)), np.ones((2, 2)), messages.WRONG_SHAPE),
        (np.ones(1), 1.0, messages.WRONG_SHAPE),
        (None, 1.0, messages.WRONG_TYPE),
        ("1.0", 1.0, messages.WRONG_TYPE),
        ([[1], [1, 2]], np.ones(2), messages.WRONG_TYPE),
        (1.0, "1.0", messages.WRONG_TYPE),
        ([1], [1, 2], messages.WRONG_LENGTH),
        (3, [1, 2], messages.WRONG_TYPE),
        ({"a": 1}, {"b": 1}, messages.WRONG_KEYS),
        (2**900, 1.0, messages.WRONG_TYPE),
        (np.array([4.0, 8.0]), np.array([1.0, 2.0]), messages.DIFFERENT_BY_FACTOR),
    ],
)
def test_what_differs_is_said(got: Any, wanted: Any, message: str) -> None:
    assert message_of(got, wanted) == message


@pytest.mark.parametrize(
    "got",
    [
        ["x" * 3_000_000, *[""] * 60_000],
        [np.array("x" * 500_000), *[np.int8(0)] * 90_000],
        [[["x" * 3_000_000]] * 2000],
    ],
)
def test_a_long_text_among_short_ones_takes_no_more_memory_than_the_judge_has(got: Any) -> None:
    assert message_of(got, np.zeros(3)) == messages.WRONG_TYPE


def test_nan_is_never_close_not_even_to_nan() -> None:
    message_of(float("nan"), float("nan"))


def test_a_usual_mistake_becomes_the_diagnosis() -> None:
    wanted = np.array([1.0, 2.0])
    mistakes = {"divided twice": wanted / 4, "added, not averaged": wanted * 2}
    assert message_of(wanted * 2, wanted, mistakes=mistakes) == "added, not averaged"
    assert message_of(wanted + 1, wanted, mistakes=mistakes) == messages.DIFFERENT


def test_the_wanted_result_is_shown_only_where_the_author_says_so() -> None:
    with pytest.raises(CheckFailed) as hidden:
        close(1.5, 64.25)
    assert hidden.value.got == "1.5"
    assert hidden.value.wanted is None
    assert "64" not in str(hidden.value.values)
    with pytest.raises(CheckFailed) as shown:
        close(1.5, 64.25, show=True)
    assert shown.value.wanted == "64.25"


def test_a_single_number_is_not_given_away_by_a_factor() -> None:
    assert message_of(4.0, 1.0) == messages.DIFFERENT
    assert message_of(4.0, 1.0, show=True) == messages.DIFFERENT_BY_FACTOR


def test_a_dtype_is_compared_on_request() -> None:
    close(np.array([1], np.float32), np.array([1.0]))
    assert message_of(np.array([1], np.float32), np.array([1.0]), dtype=True) == messages.WRONG_DTYPE


def test_equal_has_no_tolerance() -> None:
    equal([1, "a", np.arange(3)], [1, "a", np.arange(3)])
    with pytest.raises(CheckFailed):
        equal(1.0000001, 1.0)
    with pytest.raises(CheckFailed):
        equal("a", "b")


def test_fail_fills_its_sentence_and_shows_what_is_called_got() -> None:
    with pytest.raises(CheckFailed, match=r"3 records, not \{all\}") as caught:
        fail("{got} records, not {all}", got=3)
    assert (caught.value.message, caught.value.got) == ("{got} records, not {all}", "3")


@pytest.mark.parametrize(
    "value", [np.zeros((1000, 1000)), list(range(10_000)), {str(n): n for n in range(999)}, "x" * 9999]
)
def test_a_value_is_described_shortly(value: Any) -> None:
    assert len(describe(value)) < 500
