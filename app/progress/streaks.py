"""Streaks that forgive: a week counts with three active days, and one week a month may be missed. Pure.

A week begins on Monday. A week with fewer days breaks the streak, unless the month in which it began has its freeze
left: then it is stepped over, neither counted nor held against anyone. The week that is still going on
never breaks anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta

DAYS_A_WEEK = 3
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


def streak(days: Iterable[date], today: date) -> Streak:
    """The streak on ``today``, from every day on which the learner was active; days to come are left out."""
    active = Counter(_monday(day) for day in set(days) if day <= today)
    this_week = _monday(today)
    weeks = longest = 0
    frozen: tuple[int, int] | None = None
    week = min(active, default=this_week)
    while week <= this_week:
        if active[week] >= DAYS_A_WEEK:
            weeks += 1
        elif week < this_week and weeks:
            if frozen == _month(week):
                weeks = 0
            else:
                frozen = _month(week)
        longest = max(longest, weeks)
        week += _WEEK
    return Streak(weeks, longest, active[this_week], weeks > 0 and frozen == _month(this_week))


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def _month(day: date) -> tuple[int, int]:
    return day.year, day.month
