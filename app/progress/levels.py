"""Levels: XP turned into steps that grow. Pure.

Level 1 is reached with 100 XP, level 2 with 250, level 3 with 450: each step is 50 XP longer than the one before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

_XP_UNIT = 25
MIN_LEVELS = 10
"""Levels are listed to this one at least, and to three beyond the learner's."""
_LEVELS_AHEAD = 3


@dataclass(frozen=True, slots=True)
class Level:
    """A level, and how far someone is within it. All figures but ``number`` are XP."""

    number: int
    xp: int
    begins: int
    """The sum at which this level is reached."""
    ends: int
    """The sum at which the next one is."""

    @property
    def within(self) -> int:
        """XP since this level was reached."""
        return self.xp - self.begins

    @property
    def size(self) -> int:
        """XP from this level to the next one."""
        return self.ends - self.begins

    @property
    def missing(self) -> int:
        """XP to the next level."""
        return self.ends - self.xp


@dataclass(frozen=True, slots=True)
class LevelStep:
    """A level in the list of levels."""

    number: int
    xp: int
    """The sum of XP it begins with."""
    reached: bool


def xp_for_level(level: int) -> int:
    """The sum of XP at which a level is reached: 0, 100, 250, 450, 700, …"""
    return _XP_UNIT * level * (level + 3)


def level_for_xp(xp: int) -> Level:
    """The level that so much XP makes; 0 below 100 XP."""
    number = (isqrt(9 + 4 * (max(0, xp) // _XP_UNIT)) - 3) // 2
    return Level(number, max(0, xp), xp_for_level(number), xp_for_level(number + 1))


def level_steps(xp: int) -> tuple[LevelStep, ...]:
    """The levels from 1 on to some way beyond that of so much XP."""
    last = max(MIN_LEVELS, level_for_xp(xp).number + _LEVELS_AHEAD)
    return tuple(LevelStep(n, xp_for_level(n), xp_for_level(n) <= xp) for n in range(1, last + 1))
