"""Links that end mails: only ours, and only for a while."""

from __future__ import annotations

from datetime import timedelta

import pytest

from app.db import now
from app.notifications.models import Kind
from app.notifications.unsubscribing import LASTS, LinkNotOurs, Unsubscribing, Wish

ADA = Wish("a" * 32, Kind.reply)
OURS = Unsubscribing(b"k" * 32)


@pytest.mark.parametrize("wish", [ADA, Wish("b" * 32, None), Wish("1", Kind.answered)])
def test_a_token_says_what_it_was_made_for(wish: Wish) -> None:
    assert OURS.read(OURS.token(wish)) == wish


def test_a_token_ends_after_half_a_year() -> None:
    assert OURS.read(OURS.token(ADA, now() - LASTS + timedelta(minutes=1))) == ADA
    with pytest.raises(LinkNotOurs):
        OURS.read(OURS.token(ADA, now() - LASTS - timedelta(minutes=1)))


def test_a_token_of_before_the_secret_was_replaced_is_still_ours() -> None:
    old, new, next_one = (letter * 32 for letter in (b"k", b"n", b"z"))
    token = Unsubscribing(old).token(ADA)

    assert Unsubscribing(new, old).read(token) == ADA
    assert Unsubscribing(new).read(Unsubscribing(new, old).token(ADA)) == ADA, "the new one signs"
    with pytest.raises(LinkNotOurs):
        Unsubscribing(next_one, new).read(token)


def test_a_token_that_was_changed_or_made_elsewhere_is_refused() -> None:
    good = OURS.token(ADA)
    account, kind, at, signature = good.split(".")
    forged = [
        Unsubscribing(b"x" * 32).token(ADA),
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
        with pytest.raises(LinkNotOurs):
            OURS.read(token)
