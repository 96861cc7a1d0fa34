"""Streaks that forgive: a week counts with three active days, and one week a month may be missed. Pure.

A week begins on Monday. A week with fewer days breaks the streak, unless the month in which it began has its freeze
left: then it is stepped over, neither counted nor held against anyone. The week that is still going on
never breaks anything.

A streak may begin in any week, and the longest counts: so another active day, wherever it belongs, never shortens one,
and it makes no difference in which order days become known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta

MIN_DAYS_PER_WEEK = 3
"""Active days that make a week count."""
_WEEK = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Streak:
    """How regularly someone learns, as of one day."""

    weeks: int
    """Weeks that count, up to now, without one missed beyond the freezes."""
    longest: int
    """The most that ``weeks`` ever was."""
    days: int
    """Active days in the week of today."""
    frozen: bool
    """Whether this month's freeze has been used."""


def compute_streak(days: Iterable[date], today: date) -> Streak:
    """The streak on ``today``, from every day on which the learner was active; days to come are left out."""
    active = Counter(_monday(day) for day in set(days) if day <= today)
    this_week = _monday(today)
    longest = whole = frozen = 0  # the longest streak up to a week with its month's freeze left, and the one without
    week = min(active, default=this_week)
    while week <= this_week:
        if _month(week) != _month(week - _WEEK):
            whole, frozen = max(whole, frozen), 0
        if active[week] >= MIN_DAYS_PER_WEEK:
            whole, frozen = whole + 1, frozen + 1 if frozen else 0
        elif week < this_week:
            whole, frozen = 0, whole
        longest = max(longest, whole, frozen)
        week += _WEEK
    return Streak(max(whole, frozen), longest, active[this_week], frozen > whole)


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def _month(day: date) -> tuple[int, int]:
    return day.year, day.month
