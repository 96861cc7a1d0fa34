"""The level curve: the table of levels near the learner's, and a small picture of it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.progress.levels import xp_for_level

MIN_LEVELS = 10
"""Levels are shown to this one at least, and to three beyond the learner's."""
_LEVELS_AHEAD = 3
_WIDTH = 320
_HEIGHT = 160
_MARGIN = 8


@dataclass(frozen=True, slots=True)
class LevelStep:
    """One level."""

    number: int
    xp: int
    """The sum of XP it begins with."""
    reached: bool


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A level in the picture: 320 wide, 160 high, its origin on top."""

    x: int
    y: int
    reached: bool


@dataclass(frozen=True, slots=True)
class LevelCurve:
    """XP over levels."""

    line: str
    """Path data of the line through all dots."""
    dots: tuple[CurvePoint, ...]


def level_steps(xp: int) -> tuple[LevelStep, ...]:
    """The levels from 1 on to some way beyond that of so much XP."""
    found: list[LevelStep] = []
    beyond = 0
    while len(found) < MIN_LEVELS or beyond < _LEVELS_AHEAD:
        number = len(found) + 1
        reached = xp_for_level(number) <= xp
        beyond += not reached
        found.append(LevelStep(number, xp_for_level(number), reached))
    return tuple(found)


def plot_curve(levels: Sequence[LevelStep]) -> LevelCurve:
    """The picture of these levels, which begin with the first one and rise."""
    most = levels[-1].xp
    width, height = _WIDTH - 2 * _MARGIN, _HEIGHT - 2 * _MARGIN
    dots = tuple(
        CurvePoint(
            _MARGIN + round(width * level.number / levels[-1].number),
            _HEIGHT - _MARGIN - round(height * level.xp / most),
            level.reached,
        )
        for level in levels
    )
    points = [(_MARGIN, _HEIGHT - _MARGIN), *((dot.x, dot.y) for dot in dots)]
    return LevelCurve("M" + "L".join(f"{x} {y}" for x, y in points), dots)
