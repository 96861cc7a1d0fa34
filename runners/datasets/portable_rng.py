"""Random numbers for stand-ins that are the same on every machine.

Stand-ins must be identical bit for bit wherever they are generated, so that two workers, two nodes and two releases see
the same data. NumPy promises that the raw 64-bit output of a bit generator never changes; it makes no such promise
for the distributions of ``Generator``. Everything here is therefore made from raw bits with exact operations only, and
no global random state is read or changed.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

_STEP = np.float32(2.0**-24)
"""The step between the 2**24 values of a float32 in [0, 1) that are exact."""


class PortableRandom:
    """One stream of random numbers. The same seed and the same calls give the same numbers."""

    def __init__(self, seed: int) -> None:
        self._bits = np.random.PCG64(seed)

    def unit(self, *shape: int) -> Floats:
        """Float32 numbers, uniform in [0, 1)."""
        raw = self._raw(int(np.prod(shape)))
        return ((raw >> np.uint64(40)).astype(np.float32) * _STEP).reshape(shape)

    def between(self, low: float, high: float, count: int) -> Floats:
        """A column of ``count`` float32 numbers in [low, high), of shape (count, 1), ready to broadcast over rows."""
        return self.unit(count, 1) * np.float32(high - low) + np.float32(low)

    def bytes(self, count: int) -> npt.NDArray[np.uint8]:
        """``count`` integers in [0, 256)."""
        return self._raw(-(-count // 8)).astype("<u8").view(np.uint8)[:count]

    def below(self, limit: int, count: int) -> npt.NDArray[np.intp]:
        """``count`` integers in [0, limit)."""
        return (self._raw(count) % np.uint64(limit)).astype(np.intp)

    def order(self, count: int) -> npt.NDArray[np.intp]:
        """A permutation of 0 … count - 1."""
        return np.argsort(self._raw(count), kind="stable")

    def _raw(self, count: int) -> npt.NDArray[np.uint64]:
        return np.asarray(self._bits.random_raw(count), dtype=np.uint64)
