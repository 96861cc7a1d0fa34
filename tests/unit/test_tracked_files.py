"""Git holds what people write: no data sets, weights or build products, which `git add` may take along."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAX_KB = 400
BUILT = ("app/web/static/", "app/web/docs/", "node_modules/", ".venv/", "dist/")


@pytest.fixture(scope="module")
def tracked() -> list[str]:
    """The tracked files, from the root."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("this is no checkout of Git")
    return [name for name in listed.stdout.split("\0") if name]


def test_no_tracked_file_is_as_large_as_data(tracked: list[str]) -> None:
    paths = [ROOT / name for name in tracked]
    assert [path for path in paths if path.is_file() and path.stat().st_size > MAX_KB * 1024] == []


def test_nothing_that_was_built_is_tracked(tracked: list[str]) -> None:
    assert [name for name in tracked if name.startswith(BUILT)] == []
