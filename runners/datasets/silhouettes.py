"""Drawing by spans: an object is a stack of 28 rows, each row a few lit intervals.

Whole batches are drawn at once. Where an edge falls inside a pixel, the pixel is lit in part, so edges are smooth
and small shifts show. Only additions, multiplications, divisions, square roots, minima and maxima are used: IEEE
rounds these the same everywhere, which keeps stand-ins equal to the bit on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from runners.datasets.rolls import Floats, Rolls

SIDE = 28
"""Width and height of an image in pixels."""

ROWS: Floats = (np.arange(SIDE, dtype=np.float32) + np.float32(0.5)).reshape(1, SIDE)
"""The middle of each row, from the top."""

_PIXELS: Floats = np.arange(SIDE, dtype=np.float32).reshape(1, 1, SIDE)
_ZERO, _ONE = np.float32(0), np.float32(1)


@dataclass(frozen=True, slots=True)
class Span:
    """One lit interval a row: from ``left`` to ``right`` in pixels, ``tone`` bright (0 … 1), each (count, 28)."""

    left: Floats
    right: Floats
    tone: Floats


def rows_between(top: Floats, bottom: Floats) -> Floats:
    """How much of each row lies between ``top`` and ``bottom``: (count, 28), 0 … 1."""
    half = np.float32(0.5)
    inside: Floats = np.clip(np.minimum(ROWS + half, bottom) - np.maximum(ROWS - half, top), _ZERO, _ONE)
    return inside


def ramp(at: Floats, start: Floats | float, stop: Floats | float) -> Floats:
    """0 before ``start``, 1 after ``stop``, straight between."""
    first, last = np.asarray(start, np.float32), np.asarray(stop, np.float32)
    share: Floats = np.clip((at - first) / (last - first), _ZERO, _ONE)
    return share


def arch(at: Floats, top: Floats, bottom: Floats) -> Floats:
    """A quarter circle: 0 at ``top`` and above, growing to 1 at ``bottom`` and below."""
    short = _ONE - ramp(at, top, bottom)
    return np.sqrt(_ONE - short * short)


def paint(spans: list[Span], texture: Floats) -> npt.NDArray[np.uint8]:
    """Lay the spans over each other and weave the texture in: (count, 28, 28), 0 outside the spans."""
    image = np.zeros((len(texture), SIDE, SIDE), np.float32)
    lit, unlit = np.empty_like(image), np.empty_like(image)
    for span in spans:
        right = np.maximum(span.left, span.right)
        np.subtract(right[:, :, None], _PIXELS, out=lit)
        np.clip(lit, _ZERO, _ONE, out=lit)
        np.subtract(span.left[:, :, None], _PIXELS, out=unlit)
        np.clip(unlit, _ZERO, _ONE, out=unlit)
        lit -= unlit
        lit *= span.tone[:, :, None]
        image += lit
    image *= texture
    image *= np.float32(255)
    np.clip(image, _ZERO, np.float32(255), out=image)
    return image.astype(np.uint8)


class Cloth:
    """A bolt of textures to cut from: plain, grainy, striped both ways, checked, patched."""

    def __init__(self, rolls: Rolls, pieces: int = 512) -> None:
        grain = rolls.unit(pieces, SIDE, SIDE)
        pattern = np.stack([_stripes(rolls, pieces, kind) for kind in range(4)], axis=1)
        pattern = pattern[np.arange(pieces), rolls.below(4, pieces)]
        depth = rolls.between(0.0, 0.55, pieces)[:, :, None] * rolls.chance(0.6, pieces)[:, :, None]
        roughness = rolls.between(0.05, 0.4, pieces)[:, :, None]
        self._pieces = (_ONE - depth * pattern) * (_ONE - roughness * grain)

    def cut(self, rolls: Rolls, count: int) -> Floats:
        """``count`` pieces at random: (count, 28, 28), 0.3 … 1."""
        return self._pieces[rolls.below(len(self._pieces), count)]


def _stripes(rolls: Rolls, pieces: int, kind: int) -> Floats:
    """One of four patterns, 0 … 1: across, down, both, and coarse patches."""
    at = np.arange(SIDE, dtype=np.float32).reshape(1, SIDE)
    period, offset = rolls.between(2.0, 8.0, pieces), rolls.between(0.0, 8.0, pieces)
    turns = (at + offset) / period
    wave = np.abs(turns - np.floor(turns) - np.float32(0.5)) * np.float32(2)
    across, down = wave[:, :, None], wave[:, None, :]
    if kind == 3:
        coarse = rolls.unit(pieces, SIDE // 4, SIDE // 4)
        return coarse.repeat(4, axis=1).repeat(4, axis=2)
    return np.broadcast_to((across, down, across * down)[kind], (pieces, SIDE, SIDE))
