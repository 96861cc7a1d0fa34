"""Plain data as text: how arguments and results travel between sandboxes that do not trust each other.

JSON, with arrays and bytes as base64. Decoding builds only what is listed in ``PlainData``: never an object of a class
that the text names. Both sides keep the same limits, and the side that decodes checks them before it builds anything.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

PlainData: TypeAlias = Any
"""None, bool, int, float, complex, str, bytes, a list, a tuple or a dict (with text as keys) of such, or a NumPy array
of bool, int, uint, float, complex or str."""

MOST_BYTES = 4 << 20
"""Of the text that a value is encoded as."""
MOST_VALUES = 100_000
"""Of values in lists, tuples and dicts; an array counts as one."""
DEEPEST = 50
_MOST_BITS = 1024
_MOST_AXES = 32
_KINDS = "biufcU"
_DTYPE = re.compile(r"[<>|][biufcU]\d{1,6}")
_LARGEST_CHARACTER = 0x10FFFF


class NotPlainData(ValueError):
    """A value that is not plain data, or is too large, too deep or too long. The text says why, for a learner."""


def encode(value: object) -> str:
    """Write plain data as text; tensors and variables become arrays, fractions floats. Raises NotPlainData."""
    text = json.dumps(_Writer().write(value, 0), separators=(",", ":"))
    if len(text) > MOST_BYTES:
        raise _too_large()
    return text


def decode(text: str) -> PlainData:
    """Read what ``encode`` wrote. Raises NotPlainData, whatever the text is."""
    if len(text) > MOST_BYTES:
        raise _too_large()
    _check_structure(text)
    try:
        return _read(json.loads(text))
    except NotPlainData:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError, MemoryError) as e:
        raise NotPlainData("it is not in the agreed form") from e


class _Writer:
    """Counts while it converts, so that what is too much is refused before it is copied."""

    def __init__(self) -> None:
        self._values = 0
        self._bytes = 0

    def write(self, value: Any, depth: int) -> Any:
        self._values += 1
        if depth > DEEPEST:
            raise NotPlainData(f"it is nested more than {DEEPEST} deep")
        if self._values > MOST_VALUES:
            raise NotPlainData(f"it has more than {MOST_VALUES:,} values")
        kind = type(value)
        if value is None or kind is bool or kind is float:
            return value
        if kind is int:
            return self._int(value)
        if kind is str:
            return self._text(value)
        if kind is bytes or kind is bytearray:
            self._count(len(value))
            return {"bytes": base64.b64encode(value).decode()}
        if kind is complex:
            return {"complex": [value.real, value.imag]}
        return self._container(value, depth)

    def _container(self, value: Any, depth: int) -> Any:
        if isinstance(value, (np.ndarray, np.generic)):
            return self._array(np.asarray(value), depth)
        if isinstance(value, list):
            return [self.write(item, depth + 1) for item in value]
        if isinstance(value, tuple):
            return {"tuple": [self.write(item, depth + 1) for item in value]}
        if isinstance(value, Mapping):
            if not all(type(key) is str for key in value):
                raise NotPlainData("it is a dict with keys that are not text")
            return {"dict": {self._text(key): self.write(item, depth + 1) for key, item in value.items()}}
        if isinstance(value, (bool, int, float, str)):  # a subclass, such as an enum
            return self.write(
                next(plain(value) for plain in (bool, int, float, str) if isinstance(value, plain)), depth
            )
        if isinstance(value, Fraction):
            return self._fraction(value)
        if callable(getattr(value, "numpy", None)):  # a tensor or a variable
            return self.write(value.numpy(), depth + 1)
        if type(getattr(value, "values", None)) is tuple:  # a value of each replica
            return self.write(list(value.values), depth + 1)
        raise NotPlainData(f"it is of type {type(value).__name__}")

    def _array(self, array: np.ndarray[Any, Any], depth: int) -> Any:
        if array.dtype.kind == "O" or array.dtype.kind == "S":  # text in TensorFlow
            if array.size > MOST_VALUES:
                raise NotPlainData(f"it has more than {MOST_VALUES:,} values")
            return self.write(array.tolist(), depth + 1)
        if array.dtype.kind == "V" and array.dtype.names is None:  # bfloat16 and its relatives
            array = array.astype(np.float32)
        if array.dtype.kind not in _KINDS:
            raise NotPlainData(f"it is an array of dtype {array.dtype}")
        self._count(array.nbytes)
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
        return {"array": array.dtype.str, "shape": list(array.shape), "data": data}

    def _int(self, value: Any) -> int:
        if value.bit_length() > _MOST_BITS:
            raise NotPlainData(f"it is an integer of more than {_MOST_BITS} bits")
        return int(value)

    def _fraction(self, value: Fraction) -> float:
        try:
            return float(value)
        except OverflowError as e:
            raise NotPlainData("it is a fraction that is too large") from e

    def _text(self, value: Any) -> str:
        self._count(len(value))
        return str(value)

    def _count(self, size: int) -> None:
        self._bytes += size
        if self._bytes > MOST_BYTES:
            raise _too_large()


def _too_large() -> NotPlainData:
    return NotPlainData(f"it has more than {MOST_BYTES >> 20} MiB")


def _check_structure(text: str) -> None:
    """Refuse what is too deep or has too many values before any of it is built."""
    outside = "".join(text.replace("\\\\", "").replace('\\"', "").split('"')[::2])
    if outside.count(",") + outside.count("[") + outside.count("{") > 4 * MOST_VALUES:
        raise NotPlainData(f"it has more than {MOST_VALUES:,} values")
    depth = 0
    for bracket in re.findall(r"[][{}]", outside):
        depth += 1 if bracket in "[{" else -1
        if depth > 3 * DEEPEST:
            raise NotPlainData(f"it is nested more than {DEEPEST} deep")


def _read(value: Any) -> PlainData:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case list():
            return [_read(item) for item in value]
        case {"tuple": list(items), **rest} if not rest:
            return tuple(map(_read, items))
        case {"dict": dict(items), **rest} if not rest:
            return {key: _read(item) for key, item in items.items()}
        case {"bytes": str(data), **rest} if not rest:
            return base64.b64decode(data, validate=True)
        case {"complex": [float() | int() as real, float() | int() as imaginary], **rest} if not rest:
            return complex(real, imaginary)
        case {"array": str(dtype), "shape": list(shape), "data": str(data), **rest} if not rest:
            return _read_array(dtype, shape, base64.b64decode(data, validate=True))
    raise NotPlainData("it is not in the agreed form")


def _read_array(dtype: str, shape: list[Any], data: bytes) -> np.ndarray[Any, Any]:
    if not _DTYPE.fullmatch(dtype) or len(shape) > _MOST_AXES or not all(type(n) is int and n >= 0 for n in shape):
        raise NotPlainData("it is not in the agreed form")
    kind = np.dtype(dtype)
    if math.prod(shape) * kind.itemsize != len(data) or (kind.itemsize == 0 and math.prod(shape) > MOST_VALUES):
        raise NotPlainData("it is not in the agreed form")
    if kind.kind == "b" and data.translate(None, b"\0\1"):
        raise NotPlainData("it is not in the agreed form")
    if kind.kind == "U" and data and np.frombuffer(data, dtype[0] + "u4").max() > _LARGEST_CHARACTER:
        raise NotPlainData("it is not in the agreed form")
    if not data:
        return np.zeros(shape, kind)
    return np.frombuffer(data, kind).reshape(shape).copy()
