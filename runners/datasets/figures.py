"""Drawing by masters: a figure is drawn a few dozen times in large, and every image is cast from one of these.

A master is the union of discs, boxes and strokes in a square from -1 to 1 (y downwards), each number shaken a little. A
cast turns, shears, scales and shifts a master with whole numbers only, so that it is equal to the bit everywhere.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from runners.datasets.rolls import Floats, Rolls

FULL = 64
"""What a pixel wholly inside a figure has; 0 is outside."""

_SIDE = 64
"""Width and height of a master."""
_SHARP = np.float32(14)
_SHIFT = 12
_AT = (np.arange(_SIDE, dtype=np.float32) + np.float32(0.5)) * np.float32(2 / _SIDE) - np.float32(1)
_X, _Y = _AT.reshape(1, 1, _SIDE), _AT.reshape(1, _SIDE, 1)

Numbers = tuple[float, ...]
Masks = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Disc:
    """An ellipse: its middle and its two radii."""

    x: float
    y: float
    wide: float
    high: float

    def field(self, hand: Hand) -> Floats:
        """Positive inside, about the distance to the edge."""
        x, y, wide, high = hand.place(self.x), hand.place(self.y), hand.size(self.wide), hand.size(self.high)
        across, down = (_X - x) / wide, (_Y - y) / high
        inside: Floats = (1 - np.sqrt(across * across + down * down)) * np.minimum(wide, high)
        return inside


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle: its middle and half its width and height."""

    x: float
    y: float
    wide: float
    high: float

    def field(self, hand: Hand) -> Floats:
        """As Disc's."""
        x, y, wide, high = hand.place(self.x), hand.place(self.y), hand.size(self.wide), hand.size(self.high)
        inside: Floats = np.minimum(wide - np.abs(_X - x), high - np.abs(_Y - y))
        return inside


@dataclass(frozen=True, slots=True)
class Stroke:
    """A line through points, ``width`` thick."""

    points: tuple[tuple[float, float], ...]
    width: float = 0.18

    def field(self, hand: Hand) -> Floats:
        """As Disc's."""
        half = hand.size(self.width) * np.float32(0.5)
        dots = [(hand.place(x), hand.place(y)) for x, y in self.points]
        nearest = np.full((1, 1, 1), 8, np.float32)
        for (x, y), (to_x, to_y) in itertools.pairwise(dots):
            run_x, run_y = to_x - x, to_y - y
            share = ((_X - x) * run_x + (_Y - y) * run_y) / (run_x * run_x + run_y * run_y + np.float32(1e-6))
            share = np.clip(share, np.float32(0), np.float32(1))
            off_x, off_y = _X - x - share * run_x, _Y - y - share * run_y
            square = off_x * off_x + off_y * off_y
            nearest = np.minimum(nearest, square)
        inside: Floats = half - np.sqrt(nearest)
        return inside


Part = Disc | Box | Stroke


class Hand:
    """Draws each of ``count`` masters a little differently: places move by up to ``shake``, sizes by a fifth."""

    def __init__(self, rolls: Rolls, count: int, shake: float) -> None:
        self._rolls = rolls
        self._count = count
        self._shake = shake

    def place(self, at: float) -> Floats:
        """A coordinate for each master: (count, 1, 1)."""
        return self._rolls.between(at - self._shake, at + self._shake, self._count)[:, :, None]

    def size(self, length: float) -> Floats:
        """A length for each master: (count, 1, 1)."""
        return self._rolls.between(0.8 * length, 1.2 * length, self._count)[:, :, None]


def masters(parts: Sequence[Part], rolls: Rolls, count: int, shake: float = 0.07) -> Masks:
    """Draw ``count`` masters of one figure: uint8 (count, 64, 64), 0 … FULL, 0 along the edges."""
    hand = Hand(rolls, count, shake)
    fields = [part.field(hand) for part in parts]
    union = fields[0]
    for field in fields[1:]:
        union = np.maximum(union, field)
    inside = np.clip(union * _SHARP + np.float32(0.5), np.float32(0), np.float32(1))
    drawn: Masks = (inside * np.float32(FULL)).astype(np.uint8)
    drawn[:, (0, -1), :] = 0
    drawn[:, :, (0, -1)] = 0
    return drawn


@dataclass(frozen=True, slots=True)
class Pose:
    """How far casts may differ from their master."""

    turn: float = 0.2
    """Radians, nearly, to either side."""
    shear: float = 0.15
    scale: tuple[float, float] = (0.85, 1.2)
    """Of the master's size in the image."""
    shift: float = 0.12
    """Of half the image."""


class Caster:
    """Casts images of ``side`` pixels; several layers of a figure can be cast in one pose."""

    def __init__(self, rolls: Rolls, count: int, side: int, choices: int, pose: Pose) -> None:
        turn = rolls.between(-pose.turn, pose.turn, count) * np.float32(0.5)
        cos, sin = (1 - turn * turn) / (1 + turn * turn), (turn + turn) / (1 + turn * turn)
        shear = rolls.between(-pose.shear, pose.shear, count)
        wide = 1 / rolls.between(*pose.scale, count)
        high = 1 / rolls.between(*pose.scale, count)
        x, y = rolls.between(-pose.shift, pose.shift, count), rolls.between(-pose.shift, pose.shift, count)
        chosen = rolls.below(choices, count).astype(np.int32)
        at = (2 * np.arange(side, dtype=np.int32) + 1 - side).reshape(1, side)
        column = self._coordinate(at, side, cos * wide, (shear * cos - sin) * wide, x)
        row = self._coordinate(at, side, sin * high, (shear * sin + cos) * high, y)
        row *= _SIDE
        row += column
        row += (chosen * (_SIDE * _SIDE))[:, None, None]
        self._from = row

    @staticmethod
    def _coordinate(
        at: npt.NDArray[np.int32], side: int, by_column: Floats, by_row: Floats, start: Floats
    ) -> npt.NDArray[np.int32]:
        """The master's column or row for every pixel: (count, side, side)."""
        unit = np.float32(_SIDE / (2 * side) * 2**_SHIFT)
        first = ((start * np.float32(0.5) + np.float32(0.5)) * np.float32(_SIDE * 2**_SHIFT)).astype(np.int32)
        columns = (by_column * unit).astype(np.int32) * at + first
        rows = (by_row * unit).astype(np.int32) * at
        found: npt.NDArray[np.int32] = columns[:, None, :] + rows[:, :, None]
        found >>= _SHIFT
        np.minimum(found, _SIDE - 1, out=found)
        np.maximum(found, 0, out=found)
        return found

    def cast(self, drawn: Masks) -> Masks:
        """One layer: (count, side, side), 0 … FULL."""
        layer: Masks = drawn.reshape(-1)[self._from]
        return layer
