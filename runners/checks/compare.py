"""Comparing what a submission gave with what was wanted, and saying what differs in a sentence that can be translated.

A result comes from a program that may try anything: it is of any type and shape, and never broadcast to fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from runners.checks.plain_data import PlainData
from runners.wire import check_messages as messages

_LONGEST = 400
_FEW = 1e-3
"""How exactly a result has to be a multiple of the wanted one to be called so."""
_NUMBERS = "biufc"
_CHARACTER_BYTES, _NUMBER_BYTES = 4, 16
_MOST_ARRAY_BYTES = 64 << 20
"""One long text among many short ones would make an array of gigabytes, and the judge's sandbox would end."""
_NO_MISTAKES: Mapping[str, PlainData] = {}


class CheckFailed(Exception):
    """The submission does not do what the check asks.

    Attributes:
        message: a template, as in ``"{got} records were read twice"``.
        values: what its names in braces stand for.
        got, wanted: as text to show beside it; None if they are not to be shown.
    """

    def __init__(
        self, message: str, values: Mapping[str, str], got: str | None = None, wanted: str | None = None
    ) -> None:
        super().__init__(messages.fill(message, values))
        self.message, self.values, self.got, self.wanted = message, dict(values), got, wanted


def fail(message: str, **values: PlainData) -> NoReturn:
    """End the check as failed.

    Args:
        message: a sentence for the learner; names in braces are filled from ``values``, after translation.
        values: ``got`` and ``wanted`` are also shown beside the sentence.
    """
    shown = {name: describe(value) for name, value in values.items()}
    raise CheckFailed(message, shown, shown.get("got"), shown.get("wanted"))


def close(
    got: PlainData,
    wanted: PlainData,
    *,
    rtol: float = 1e-4,
    atol: float = 1e-6,
    mistakes: Mapping[str, PlainData] = _NO_MISTAKES,
    dtype: bool = False,
    show: bool = False,
) -> None:
    """Fail unless ``got`` equals ``wanted`` within a tolerance. NaN is close to nothing.

    Args:
        got: what the submission gave.
        wanted: numbers, arrays, or lists, tuples and dicts of them, with the same structure and shapes.
        rtol: tolerance relative to ``wanted``.
        atol: absolute tolerance.
        mistakes: a diagnosis for each usual mistake, and what somebody who makes it would get. The first that is close
            to ``got`` becomes the message.
        dtype: whether arrays must have the dtype of ``wanted``, too.
        show: whether the learner may see ``wanted``; ``got`` is always shown.
    """
    _compare(got, wanted, _Tolerance(rtol, atol, dtype, show), mistakes)


def equal(
    got: PlainData,
    wanted: PlainData,
    *,
    mistakes: Mapping[str, PlainData] = _NO_MISTAKES,
    dtype: bool = False,
    show: bool = False,
) -> None:
    """Fail unless ``got`` is exactly ``wanted``: text, counts, lists of ids. The arguments are those of ``close``."""
    _compare(got, wanted, _Tolerance(0.0, 0.0, dtype, show), mistakes)


def describe(value: PlainData) -> str:
    """A value as short text."""
    if isinstance(value, str):
        text = value
    elif isinstance(value, (np.ndarray, np.generic)):
        text = np.array2string(np.asarray(value), precision=6, threshold=20, edgeitems=3, separator=", ")
    elif isinstance(value, float):
        text = f"{value:.7g}"
    elif isinstance(value, (list, tuple)):
        inner = ", ".join([describe(item) for item in value[:20]] + ["…"] * (len(value) > 20))
        text = f"({inner})" if isinstance(value, tuple) else f"[{inner}]"
    elif isinstance(value, dict):
        pairs = [f"{key}: {describe(item)}" for key, item in list(value.items())[:20]]
        text = "{" + ", ".join(pairs + ["…"] * (len(value) > 20)) + "}"
    else:
        text = repr(value)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " …"


@dataclass(frozen=True, slots=True)
class _Tolerance:
    rtol: float
    atol: float
    dtype: bool
    show: bool


@dataclass(frozen=True, slots=True)
class _Difference:
    message: str
    values: dict[str, str] = field(default_factory=dict)


def _compare(got: PlainData, wanted: PlainData, tolerance: _Tolerance, mistakes: Mapping[str, PlainData]) -> None:
    difference = _difference(got, wanted, tolerance)
    if difference is None:
        return
    for diagnosis, result in mistakes.items():
        if _difference(got, result, tolerance) is None:
            difference = _Difference(diagnosis)
            break
    shown = describe(wanted) if tolerance.show else None
    values = {"got": describe(got)} | ({"wanted": shown} if shown is not None else {})
    raise CheckFailed(difference.message, values | difference.values, values["got"], shown)


def _difference(got: PlainData, wanted: PlainData, tolerance: _Tolerance) -> _Difference | None:
    """How ``got`` differs, if it does."""
    if isinstance(wanted, (bool, int, float, complex, np.ndarray, np.generic)):
        return _array_difference(got, np.asarray(wanted), tolerance)
    if isinstance(wanted, (list, tuple)):
        return _sequence_difference(got, wanted, tolerance)
    if isinstance(wanted, Mapping):
        return _dict_difference(got, wanted, tolerance)
    if type(got) is not type(wanted):
        return _Difference(messages.WRONG_TYPE, {"type": _type_name(got), "expected": _type_name(wanted)})
    return None if got == wanted else _Difference(messages.DIFFERENT)


def _sequence_difference(got: PlainData, wanted: Any, tolerance: _Tolerance) -> _Difference | None:
    if isinstance(got, np.ndarray) and got.ndim:
        got = list(got)
    if not isinstance(got, (list, tuple)):
        return _Difference(messages.WRONG_TYPE, {"type": _type_name(got), "expected": _type_name(wanted)})
    if len(got) != len(wanted):
        return _Difference(messages.WRONG_LENGTH, {"length": str(len(got)), "expected": str(len(wanted))})
    return next(filter(None, (_difference(*pair, tolerance) for pair in zip(got, wanted, strict=True))), None)


def _dict_difference(got: PlainData, wanted: Mapping[str, Any], tolerance: _Tolerance) -> _Difference | None:
    if not isinstance(got, dict):
        return _Difference(messages.WRONG_TYPE, {"type": _type_name(got), "expected": "dict"})
    if got.keys() != wanted.keys():
        values = {"keys": describe(sorted(got)), "expected": describe(sorted(wanted))}
        return _Difference(messages.WRONG_KEYS, values)
    return next(filter(None, (_difference(got[key], wanted[key], tolerance) for key in wanted)), None)


def _array_difference(got: PlainData, wanted: np.ndarray[Any, Any], tolerance: _Tolerance) -> _Difference | None:
    array = _as_array(got)
    numeric = wanted.dtype.kind in _NUMBERS
    if array is None or (array.dtype.kind in _NUMBERS) != numeric:
        expected = "number" if numeric and not wanted.ndim else "array"
        return _Difference(messages.WRONG_TYPE, {"type": _type_name(got), "expected": expected})
    if array.shape != wanted.shape:
        values = {"shape": str(array.shape), "expected": str(wanted.shape)}
        return _Difference(messages.WRONG_SHAPE, values)
    if tolerance.dtype and array.dtype != wanted.dtype:
        return _Difference(messages.WRONG_DTYPE, {"dtype": str(array.dtype), "expected": str(wanted.dtype)})
    if not numeric or not (tolerance.rtol or tolerance.atol):
        return None if np.array_equal(array, wanted) else _Difference(messages.DIFFERENT)
    with np.errstate(all="ignore"):
        array, wanted = (a.astype(np.complex128 if a.dtype.kind == "c" else np.float64) for a in (array, wanted))
        if np.allclose(array, wanted, rtol=tolerance.rtol, atol=tolerance.atol):
            return None
        if not np.isfinite(array).all() and np.isfinite(wanted).all():
            return _Difference(messages.NOT_A_NUMBER)
        return _factor(array, wanted, tolerance) or _Difference(messages.DIFFERENT)


def _factor(array: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any], tolerance: _Tolerance) -> _Difference | None:
    """Whether it is a multiple of the wanted one. Of a single number that would give the wanted one away."""
    size = float(np.sum(np.abs(wanted) ** 2))
    if not size or not (tolerance.show or wanted.size > 1):
        return None
    factor = float(np.real(np.sum(array * np.conj(wanted)))) / size
    if not np.isfinite(factor) or abs(factor) < _FEW or abs(factor - 1) < 10 * _FEW:
        return None
    if not np.allclose(array, factor * wanted, rtol=_FEW, atol=tolerance.atol):
        return None
    return _Difference(messages.DIFFERENT_BY_FACTOR, {"factor": f"{factor:.4g}"})


def _as_array(value: PlainData) -> np.ndarray[Any, Any] | None:
    """Numbers, arrays, and lists of them as an array; None for anything else."""
    if not isinstance(value, (bool, int, float, complex, str, list, tuple, np.ndarray, np.generic)):
        return None
    elements, largest = _elements(value)
    if elements * largest > _MOST_ARRAY_BYTES:
        return None
    try:
        array = np.asarray(value)
    except (ValueError, OverflowError):  # ragged
        return None
    return array if array.dtype.kind in _NUMBERS + "U" else None


def _elements(value: PlainData) -> tuple[int, int]:
    """How many elements an array of it would have, and the bytes of each: as many as the largest takes."""
    if isinstance(value, (list, tuple)):
        counts, sizes = zip(*map(_elements, value), strict=True) if value else ((0,), (0,))
        return sum(counts), max(sizes)
    if isinstance(value, (np.ndarray, np.generic)):
        return value.size, value.dtype.itemsize
    return 1, _CHARACTER_BYTES * len(value) if isinstance(value, str) else _NUMBER_BYTES


def _type_name(value: object) -> str:
    return "None" if value is None else "array" if isinstance(value, np.ndarray) else type(value).__name__
