"""Levels: steps of XP that grow. Pure.

Level 1 takes 100 XP, level 2 takes 250, level 3 takes 450: each step is 50 XP longer than the one before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

_XP_UNIT = 25
MIN_LEVELS = 10
"""The list of levels goes at least this far, and to three beyond the learner's."""
_LEVELS_AHEAD = 3


@dataclass(frozen=True, slots=True)
class Level:
    """A level and the progress within it. All numbers except ``number`` are XP."""

    number: int
    xp: int
    begins: int
    """The total at which this level is reached."""
    ends: int
    """The total at which the next level is reached."""

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
    number: int
    xp: int
    """The total XP at which it is reached."""
    reached: bool


def xp_for_level(level: int) -> int:
    """The total XP at which a level is reached: 0, 100, 250, 450, 700, …"""
    return _XP_UNIT * level * (level + 3)


def level_for_xp(xp: int) -> Level:
    """The level for a total of XP; 0 below 100 XP."""
    number = (isqrt(9 + 4 * (max(0, xp) // _XP_UNIT)) - 3) // 2
    return Level(number, max(0, xp), xp_for_level(number), xp_for_level(number + 1))


def level_steps(xp: int) -> tuple[LevelStep, ...]:
    """The levels from 1 to a few beyond the one for this XP."""
    last = max(MIN_LEVELS, level_for_xp(xp).number + _LEVELS_AHEAD)
    return tuple(LevelStep(n, xp_for_level(n), xp_for_level(n) <= xp) for n in range(1, last + 1))
