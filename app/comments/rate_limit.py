"""How fast one account may write. A policy and a function of it, both pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class CommentRateLimit:
    """At most ``most`` comments within any ``within``."""

    most: int
    within: timedelta


NEW_ACCOUNT_AGE = timedelta(days=1)
"""For so long an account counts as new."""
RATE_LIMITS = (
    CommentRateLimit(6, timedelta(minutes=1)),
    CommentRateLimit(60, timedelta(hours=1)),
    CommentRateLimit(200, timedelta(days=1)),
)
NEW_ACCOUNT_RATE_LIMITS = (
    CommentRateLimit(4, timedelta(minutes=1)),
    CommentRateLimit(15, timedelta(hours=1)),
    CommentRateLimit(40, timedelta(days=1)),
)
MAX_TIMESTAMPS = max(rule.most for rule in (*RATE_LIMITS, *NEW_ACCOUNT_RATE_LIMITS))
"""So many of the latest comments decide."""


def limits_for(age: timedelta) -> tuple[CommentRateLimit, ...]:
    """The rules for an account of that age."""
    return NEW_ACCOUNT_RATE_LIMITS if age < NEW_ACCOUNT_AGE else RATE_LIMITS


def retry_after(written: Sequence[datetime], at: datetime, rules: Sequence[CommentRateLimit]) -> timedelta:
    """How long to wait until one more may be written; ``written`` has the latest first. Zero if it may be now."""
    waits = [written[rule.most - 1] + rule.within - at for rule in rules if len(written) >= rule.most]
    return max([timedelta(0), *waits])
