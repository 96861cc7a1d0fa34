"""How fast one account may write."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from app.comments.rate_limit import NEW_ACCOUNT_RATE_LIMITS, RATE_LIMITS, CommentRateLimit, limits_for, retry_after

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def _written(*seconds_ago: int) -> list[datetime]:
    return [NOW - timedelta(seconds=s) for s in seconds_ago]


def test_who_has_written_little_need_not_wait() -> None:
    assert retry_after(_written(1, 2, 3), NOW, RATE_LIMITS) == timedelta(0)


def test_who_has_written_enough_waits_until_the_oldest_is_long_enough_ago() -> None:
    rules = (CommentRateLimit(3, timedelta(minutes=1)),)

    assert retry_after(_written(5, 10, 20), NOW, rules) == timedelta(seconds=40)
    assert retry_after(_written(5, 10, 60), NOW, rules) == timedelta(0)


def test_the_longest_of_several_waits_counts() -> None:
    rules = (CommentRateLimit(1, timedelta(minutes=1)), CommentRateLimit(2, timedelta(hours=1)))

    assert retry_after(_written(10, 60), NOW, rules) == timedelta(minutes=59)


def test_new_accounts_write_more_slowly() -> None:
    assert limits_for(timedelta(hours=1)) == NEW_ACCOUNT_RATE_LIMITS
    assert limits_for(timedelta(days=2)) == RATE_LIMITS
