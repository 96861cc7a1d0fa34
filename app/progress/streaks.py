"""Streaks: a week with three active days counts, and one week a month may be missed. Pure.

Weeks start on Monday. A week with fewer active days breaks the streak unless the freeze of the month in which it starts
is still unused; then the week is skipped: it neither counts nor breaks the streak. The current week never breaks it.

A streak may start in any week, and the longest one counts. So another active day never shortens a streak, and the order
in which days become known does not matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta

MIN_DAYS_PER_WEEK = 3
"""Active days that a week needs to count."""
_WEEK = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Streak:
    """A learner's streak on a given day."""

    weeks: int
    """Weeks that count, up to now, with no missed week beyond the freezes."""
    longest: int
    """The highest value that ``weeks`` ever had."""
    days: int
    """Active days in the current week."""


def compute_streak(days: Iterable[date], today: date) -> Streak:
    """The streak on ``today``, from all days on which the learner was active; later days are ignored."""
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
    return Streak(max(whole, frozen), longest, active[this_week])


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def _month(day: date) -> tuple[int, int]:
    return day.year, day.month
