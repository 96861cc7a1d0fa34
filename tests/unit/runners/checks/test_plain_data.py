"""Plain data survives the trip between sandboxes, and nothing else makes it."""

from __future__ import annotations

import contextlib
import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.checks import plain_data
from runners.checks.plain_data import NotPlainData, decode, encode

SCALARS = st.none() | st.booleans() | st.integers(-(2**80), 2**80) | st.text(st.characters(codec="utf-8")) | st.binary()
PLAIN = st.recursive(
    SCALARS | st.floats(allow_nan=False) | st.complex_numbers(allow_nan=False),
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(PLAIN)
def test_plain_values_come_back_as_they_were(value: Any) -> None:
    assert decode(encode(value)) == value


@pytest.mark.parametrize("dtype", ["bool", "i1", "u2", "i8", "f2", "f4", ">f8", "c8", "U5"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3)])
def test_arrays_keep_shape_values_and_dtype(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    back = decode(encode(array))
    assert back.shape == array.shape
    assert back.dtype == array.dtype.newbyteorder("<")
    assert np.array_equal(back, array)
    back[...] = 0  # a check may change its copy


class Tensor:
    """Quacks like a tensor."""

    def numpy(self) -> Any:
        return np.array([1, 2], np.float32)


def test_tensors_become_arrays_and_text_of_tensorflow_becomes_bytes() -> None:
    assert decode(encode({"a": Tensor()}))["a"].tolist() == [1, 2]
    assert decode(encode(np.array([b"x", b"y"], dtype=object))) == [b"x", b"y"]


def test_fractions_become_floats() -> None:
    assert decode(encode([Fraction(3, 4)])) == [0.75]


def nested(deep: int) -> Any:
    value: Any = []
    for _ in range(deep):
        value = [value]
    return value


class Sneaky:
    """Asks to be executed by whoever unpickles it."""

    def __reduce__(self) -> Any:
        return (print, ("executed",))


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (nested(10_000), "nested"),
        ([0] * 200_000, "values"),
        (np.zeros(2 << 20), "MiB"),
        (np.broadcast_to(np.float64(0), (2**31,)), "MiB"),
        ("x" * (9 << 20), "MiB"),
        (2**2000, "bits"),
        (Fraction(10**400), "fraction"),
        ({1: 2}, "keys"),
        (Sneaky(), "Sneaky"),
        (object, "type"),
        (np.array(["2026"], dtype="M8[D]"), "dtype"),
    ],
)
def test_what_is_too_much_or_no_data_is_refused_with_the_reason(value: Any, why: str) -> None:
    with pytest.raises(NotPlainData, match=why):
        encode(value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        "[" * 100_000,
        "[" * 200 + "]" * 200,
        "[" + "[]," * 500_000 + "[]]",
        "x" * (plain_data.MOST_BYTES + 1),
        "1" * 5000,
        '{"object": "os.system"}',
        '{"dict": {}, "tuple": []}',
        '{"bytes": "€"}',
        *(
            json.dumps({"array": dtype, "shape": shape, "data": data})
            for dtype, shape, data in [
                ("|O8", [1], "AAAAAAAAAAA="),
                ("<f4,<f4", [1], "AAAAAAAAAAA="),
                ("<f8", [-1], ""),
                ("<f8", [2], "AAAAAAAAAAA="),
                ("<f8", [2**62, 4], ""),
                ("<U0", [2**40], ""),
                ("|b1", [1], "Ag=="),
                ("<U1", [1], "//////8="[:8]),
                ("<f8", [1] * 40, "AAAAAAAAAAA="),
            ]
        ),
    ],
)
def test_hostile_text_is_refused_and_never_half_believed(text: str) -> None:
    with pytest.raises(NotPlainData):
        decode(text)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(NotPlainData):
        decode(text)


def test_an_array_without_data_of_a_giant_shape_is_empty_and_small() -> None:
    assert decode(json.dumps({"array": "<f8", "shape": [0, 2**40], "data": ""})).nbytes == 0
