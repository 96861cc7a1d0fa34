"""Streaks: three days make a week, one missed week per month is forgiven, and activity never takes anything away."""

from __future__ import annotations

from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from app.progress.streaks import Streak, compute_streak
from tests.factories.hypothesis_examples import example_count

_MONDAY = date(2026, 1, 5)
_DAYS = st.sets(st.integers(0, 120).map(lambda n: _MONDAY + timedelta(n)), max_size=60)
_WEEKS = st.lists(st.booleans(), min_size=18, max_size=18)
"""Whether one week after the other counts."""


def _week(number: int, days: int = 3) -> list[date]:
    return [_MONDAY + timedelta(weeks=number, days=day) for day in range(days)]


def test_three_days_of_a_week_count_and_two_do_not() -> None:
    assert compute_streak(_week(0, 2), _MONDAY + timedelta(2)) == Streak(weeks=0, longest=0, days=2)
    assert compute_streak(_week(0), _MONDAY + timedelta(2)) == Streak(weeks=1, longest=1, days=3)


def test_nobody_has_a_streak_of_nothing() -> None:
    assert compute_streak([], _MONDAY) == Streak(0, 0, 0)


def test_the_week_that_goes_on_breaks_nothing() -> None:
    assert compute_streak(_week(0) + _week(1, 1), _MONDAY + timedelta(weeks=1)).weeks == 1


def test_one_missed_week_a_month_is_stepped_over_and_a_second_one_is_not() -> None:
    there = _week(0) + _week(2)
    assert compute_streak(there, _MONDAY + timedelta(weeks=2, days=2)) == Streak(weeks=2, longest=2, days=3)

    missed_twice = _week(0) + _week(3)
    today = _MONDAY + timedelta(weeks=3, days=2)
    assert compute_streak(missed_twice, today) == Streak(weeks=1, longest=1, days=3), "a new one, with its own"


def test_each_month_has_its_own_freeze() -> None:
    days = [day for number in (0, 2, 3, 5, 6) for day in _week(number)]

    assert compute_streak(days, _MONDAY + timedelta(weeks=6, days=6)).weeks == 5


def test_a_streak_begins_where_it_becomes_the_longest() -> None:
    """If it used the first week of June, its freeze would be gone two weeks later."""
    june = [day for number in (21, 23, 25, 26, 27) for day in _week(number)]
    assert june[0] == date(2026, 6, 1)

    without, whole = compute_streak(june[3:], june[-1]), compute_streak(june, june[-1])

    assert without == Streak(weeks=4, longest=4, days=3)
    assert whole == without


def test_days_to_come_are_left_out() -> None:
    assert compute_streak(_week(5), _MONDAY) == Streak(0, 0, 0)


@given(_DAYS, _DAYS)
def test_more_activity_never_shortens_a_streak(days: set[date], more: set[date]) -> None:
    today = _MONDAY + timedelta(121)

    assert compute_streak(days | more, today).longest >= compute_streak(days, today).longest


@example_count(200)
@given(_WEEKS, st.integers(0, 17))
def test_one_more_week_never_shortens_a_streak(counts: list[bool], more: int) -> None:
    today = _MONDAY + timedelta(weeks=18)
    days = [day for number, active in enumerate(counts) if active for day in _week(number)]

    before, after = compute_streak(days, today), compute_streak(days + _week(more), today)

    assert after.weeks >= before.weeks
    assert after.longest >= before.longest


@given(_DAYS, st.integers(0, 60))
def test_the_longest_streak_never_shrinks_as_time_goes_by(days: set[date], later: int) -> None:
    today = _MONDAY + timedelta(90)

    assert compute_streak(days, today + timedelta(later)).longest >= compute_streak(days, today).longest
