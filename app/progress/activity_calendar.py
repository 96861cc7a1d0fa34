"""The calendar of active days in the last weeks. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, timedelta

from app.progress.streaks import MIN_DAYS_PER_WEEK

WEEKS = 12


@dataclass(frozen=True, slots=True)
class CalendarWeek:
    """One week, starting on Monday."""

    monday: date
    days: tuple[bool, ...]
    """Whether each day was active, Monday to Sunday."""

    @property
    def active(self) -> int:
        """The number of active days."""
        return sum(self.days)

    @property
    def counts(self) -> bool:
        """Whether the week counts toward a streak."""
        return self.active >= MIN_DAYS_PER_WEEK


def calendar_weeks(active: Collection[date], today: date, count: int = WEEKS) -> tuple[CalendarWeek, ...]:
    """The last ``count`` weeks, ending with the current one."""
    monday = today - timedelta(days=today.weekday())
    mondays = [monday - timedelta(weeks=i) for i in reversed(range(count))]
    return tuple(CalendarWeek(m, tuple(m + timedelta(days=i) in active for i in range(7))) for m in mondays)
