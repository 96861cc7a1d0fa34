"""Golden files: complete outputs, compared with a recorded version. ``LOCKSTEP_TEST_GOLDEN=write`` rewrites them."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parent


def assert_golden(name: str, text: str) -> None:
    """Check that the text equals the golden file."""
    path = FOLDER / name
    if os.environ.get("LOCKSTEP_TEST_GOLDEN") == "write":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"{name} differs; check the difference, then rewrite it"
