"""Git holds what people write: no data sets, weights or build products, which `git add` may take along."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAX_KB = 400


def test_no_tracked_file_is_as_large_as_data() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("this is no checkout of Git")
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    assert [path for path in paths if path.is_file() and path.stat().st_size > MAX_KB * 1024] == []
