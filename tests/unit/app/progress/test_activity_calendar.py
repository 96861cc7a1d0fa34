"""The calendar ends with this week, each from Monday to Sunday."""

from __future__ import annotations

from datetime import date

from app.progress.activity_calendar import WEEKS, calendar_weeks

SATURDAY = date(2026, 11, 21)


def test_each_day_is_in_its_own_place() -> None:
    *rest, second, first = calendar_weeks({date(2026, 11, 16), SATURDAY, date(2026, 11, 15)}, SATURDAY)

    assert first.monday == date(2026, 11, 16)
    assert first.days == (True, False, False, False, False, True, False)
    assert second.days == (False, False, False, False, False, False, True)
    assert len(rest) == WEEKS - 2
    assert not any(week.active for week in rest)


def test_a_week_counts_with_three_days() -> None:
    days = [date(2026, 11, 16), date(2026, 11, 18), date(2026, 11, 20)]

    assert not calendar_weeks(days[:2], SATURDAY)[-1].counts
    assert calendar_weeks(days, SATURDAY)[-1].counts
