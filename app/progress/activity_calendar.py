"""The calendar of weeks: on which days of the last weeks someone learned. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, timedelta

from app.progress.streaks import MIN_DAYS_PER_WEEK

WEEKS = 12


@dataclass(frozen=True, slots=True)
class CalendarWeek:
    """One week from its Monday on."""

    monday: date
    days: tuple[bool, ...]
    """Of Monday to Sunday: whether something was learned."""

    @property
    def active(self) -> int:
        """How many of them."""
        return sum(self.days)

    @property
    def counts(self) -> bool:
        """Whether these are enough for a streak."""
        return self.active >= MIN_DAYS_PER_WEEK


def calendar_weeks(active: Collection[date], today: date, count: int = WEEKS) -> tuple[CalendarWeek, ...]:
    """The last weeks, the one of today last."""
    monday = today - timedelta(days=today.weekday())
    mondays = [monday - timedelta(weeks=i) for i in reversed(range(count))]
    return tuple(CalendarWeek(m, tuple(m + timedelta(days=i) in active for i in range(7))) for m in mondays)
