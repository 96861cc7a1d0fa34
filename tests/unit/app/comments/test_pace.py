"""How fast one account may write."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from app.comments.pace import RULES, RULES_FOR_NEWCOMERS, Rule, rules_for, wait

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def _written(*seconds_ago: int) -> list[datetime]:
    return [NOW - timedelta(seconds=s) for s in seconds_ago]


def test_who_has_written_little_need_not_wait() -> None:
    assert wait(_written(1, 2, 3), NOW, RULES) == timedelta(0)


def test_who_has_written_enough_waits_until_the_oldest_is_long_enough_ago() -> None:
    rules = (Rule(3, timedelta(minutes=1)),)

    assert wait(_written(5, 10, 20), NOW, rules) == timedelta(seconds=40)
    assert wait(_written(5, 10, 60), NOW, rules) == timedelta(0)


def test_the_longest_of_several_waits_counts() -> None:
    rules = (Rule(1, timedelta(minutes=1)), Rule(2, timedelta(hours=1)))

    assert wait(_written(10, 60), NOW, rules) == timedelta(minutes=59)


def test_new_accounts_write_more_slowly() -> None:
    assert rules_for(timedelta(hours=1)) == RULES_FOR_NEWCOMERS
    assert rules_for(timedelta(days=2)) == RULES
