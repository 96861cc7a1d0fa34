"""Golden files: what was right once is compared whole. ``LOCKSTEP_TEST_GOLDEN=write`` writes them anew."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parent


def assert_golden(name: str, text: str) -> None:
    """The text is that of the golden file."""
    path = FOLDER / name
    if os.environ.get("LOCKSTEP_TEST_GOLDEN") == "write":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"{name} differs; look at it, then write it anew"
