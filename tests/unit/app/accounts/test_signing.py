"""The site's secrets: readable only by their owner, and replaceable at any time."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.accounts.signing import Signer, delete_previous_secret, load_secrets, rotate_secret


def test_the_secret_is_made_once_for_all_processes_and_read_by_its_user_only(tmp_path: Path) -> None:
    file = tmp_path / "secrets" / "sign-in"
    with ThreadPoolExecutor(8) as pool:
        made = set(pool.map(lambda _: load_secrets(file), range(32)))

    assert len(made) == 1
    assert load_secrets(file) in made
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [path.name for path in file.parent.iterdir()] == ["sign-in"]


def test_a_secret_that_was_cut_off_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "sign-in").write_bytes(b"short")
    with pytest.raises(ValueError, match="Delete it"):
        load_secrets(tmp_path / "sign-in")


def test_a_new_secret_signs_and_the_one_before_it_is_believed_until_the_next(tmp_path: Path) -> None:
    file = tmp_path / "secrets" / "sign-in"
    (first,) = load_secrets(file)

    rotate_secret(file)
    second, before = load_secrets(file)
    rotate_secret(file)
    third, last = load_secrets(file)
    delete_previous_secret(file)

    assert before == first
    assert last == second
    assert len({first, second, third}) == 3
    assert load_secrets(file) == (third,)


def test_a_replaced_secret_is_read_by_its_user_only(tmp_path: Path) -> None:
    file = tmp_path / "secrets" / "sign-in"
    rotate_secret(file)
    rotate_secret(file)

    assert sorted(path.name for path in file.parent.iterdir()) == ["sign-in", "sign-in.before"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in file.parent.iterdir()} == {0o600}


@pytest.mark.parametrize("signature", ["", "\xe9" * 43, "\udcff" * 43])
def test_what_is_no_signature_is_refused_whatever_its_characters(signature: str) -> None:
    assert not Signer([b"x" * 32]).verify(signature, "sign-up", "ada@example.org")
