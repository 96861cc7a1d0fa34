"""A secret of the site, that only we can read."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.accounts.secret import read_secret


def test_the_secret_is_made_once_for_all_processes_and_read_by_its_user_only(tmp_path: Path) -> None:
    file = tmp_path / "secrets" / "sign-in"
    with ThreadPoolExecutor(8) as pool:
        made = set(pool.map(lambda _: read_secret(file), range(32)))

    assert len(made) == 1
    assert read_secret(file) in made
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [path.name for path in file.parent.iterdir()] == ["sign-in"]


def test_a_secret_that_was_cut_off_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "sign-in").write_bytes(b"short")
    with pytest.raises(ValueError, match="delete it"):
        read_secret(tmp_path / "sign-in")
