"""Links that end mails: only ours, only for a while, and a secret that only we can read."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from app.db import now
from app.notifications.models import Kind
from app.notifications.unsubscribing import LASTS, LinkNotOurs, Unsubscribing, Wish, read_secret

ADA = Wish("a" * 32, Kind.reply)
OURS = Unsubscribing(b"k" * 32)


@pytest.mark.parametrize("wish", [ADA, Wish("b" * 32, None), Wish("1", Kind.answered)])
def test_a_token_says_what_it_was_made_for(wish: Wish) -> None:
    assert OURS.read(OURS.token(wish)) == wish


def test_a_token_ends_after_half_a_year() -> None:
    assert OURS.read(OURS.token(ADA, now() - LASTS + timedelta(minutes=1))) == ADA
    with pytest.raises(LinkNotOurs):
        OURS.read(OURS.token(ADA, now() - LASTS - timedelta(minutes=1)))


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


def test_the_secret_is_made_once_for_all_processes_and_read_by_its_user_only(tmp_path: Path) -> None:
    file = tmp_path / "secrets" / "unsubscribe"
    with ThreadPoolExecutor(8) as pool:
        made = set(pool.map(lambda _: read_secret(file), range(32)))

    assert len(made) == 1
    assert read_secret(file) in made
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [path.name for path in file.parent.iterdir()] == ["unsubscribe"]


def test_a_secret_that_was_cut_off_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "unsubscribe").write_bytes(b"short")
    with pytest.raises(ValueError, match="delete it"):
        read_secret(tmp_path / "unsubscribe")
