"""How fast an account may write, depending on its age."""

from __future__ import annotations

from datetime import timedelta

from app.rate_limit import WindowLimit

NEW_ACCOUNT_AGE = timedelta(days=1)
"""How long an account counts as new."""
RATE_LIMITS = (
    WindowLimit(6, timedelta(minutes=1)),
    WindowLimit(60, timedelta(hours=1)),
    WindowLimit(200, timedelta(days=1)),
)
NEW_ACCOUNT_RATE_LIMITS = (
    WindowLimit(4, timedelta(minutes=1)),
    WindowLimit(15, timedelta(hours=1)),
    WindowLimit(40, timedelta(days=1)),
)
MAX_TIMESTAMPS = max(each.max_count for each in (*RATE_LIMITS, *NEW_ACCOUNT_RATE_LIMITS))
"""The number of recent comments that the limits look at."""


def limits_for(age: timedelta) -> tuple[WindowLimit, ...]:
    """The limits of an account of that age. Pure."""
    return NEW_ACCOUNT_RATE_LIMITS if age < NEW_ACCOUNT_AGE else RATE_LIMITS
