"""Rules for the names in this repository."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
LONGEST = 80
"""Characters in the name of a test: a sentence, not a paragraph."""


def test_the_name_of_every_test_fits_on_a_line() -> None:
    names = [
        (path.name, name)
        for path in TESTS.rglob("test_*.py")
        for name in re.findall(r"^\s*(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE)
    ]
    assert len(names) > 1000
    assert [(file, name) for file, name in names if len(name) > LONGEST] == []
