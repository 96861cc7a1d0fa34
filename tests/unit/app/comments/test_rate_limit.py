"""How fast one account may write comments."""

from __future__ import annotations

from datetime import timedelta

from app.comments.rate_limit import NEW_ACCOUNT_RATE_LIMITS, RATE_LIMITS, limits_for


def test_new_accounts_write_more_slowly() -> None:
    assert limits_for(timedelta(hours=1)) == NEW_ACCOUNT_RATE_LIMITS
    assert limits_for(timedelta(days=2)) == RATE_LIMITS
