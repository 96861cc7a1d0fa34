"""Unsubscribe links: only ours, and only for a while."""

from __future__ import annotations

from datetime import timedelta

import pytest

from app.db import now
from app.notifications.models import NotificationKind
from app.notifications.unsubscribe_links import (
    LINK_LIFETIME,
    InvalidUnsubscribeLink,
    UnsubscribeRequest,
    UnsubscribeTokens,
)

ADA = UnsubscribeRequest("a" * 32, NotificationKind.reply)
OURS = UnsubscribeTokens(b"k" * 32)


@pytest.mark.parametrize(
    "wish", [ADA, UnsubscribeRequest("b" * 32, None), UnsubscribeRequest("1", NotificationKind.answered)]
)
def test_a_token_says_what_it_was_made_for(wish: UnsubscribeRequest) -> None:
    assert OURS.verify(OURS.sign(wish)) == wish


def test_a_token_ends_after_half_a_year() -> None:
    assert OURS.verify(OURS.sign(ADA, now() - LINK_LIFETIME + timedelta(minutes=1))) == ADA
    with pytest.raises(InvalidUnsubscribeLink):
        OURS.verify(OURS.sign(ADA, now() - LINK_LIFETIME - timedelta(minutes=1)))


def test_a_token_of_before_the_secret_was_replaced_is_still_ours() -> None:
    old, new, next_one = (letter * 32 for letter in (b"k", b"n", b"z"))
    token = UnsubscribeTokens(old).sign(ADA)

    assert UnsubscribeTokens(new, old).verify(token) == ADA
    assert UnsubscribeTokens(new).verify(UnsubscribeTokens(new, old).sign(ADA)) == ADA, "the new one signs"
    with pytest.raises(InvalidUnsubscribeLink):
        UnsubscribeTokens(next_one, new).verify(token)


def test_a_token_that_was_changed_or_made_elsewhere_is_refused() -> None:
    good = OURS.sign(ADA)
    account, kind, at, signature = good.split(".")
    forged = [
        UnsubscribeTokens(b"x" * 32).sign(ADA),
        f"{'c' * 32}.{kind}.{at}.{signature}",
        f"{account}.all.{at}.{signature}",
        f"{account}.{kind}.{int(at, 16) + 1:x}.{signature}",
        f"{account}.{kind}.{at}.{signature[:-1]}",
        f"{account}.{kind}.{at}.{'A' * 43}",
        f"{account}.achievement.{at}.{signature}",
        good + "\n",
        " " + good,
        "",
        "....",
        "a" * 5000,
    ]
    for token in forged:
        with pytest.raises(InvalidUnsubscribeLink):
            OURS.verify(token)
