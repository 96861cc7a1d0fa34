"""The list of hostile programs names existing files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "long/hostile"
ROWS = re.findall(r"^\| (.+?) \| `(.+?)` \| (.+?) \|$", (FOLDER / "README.md").read_text(), re.MULTILINE)


def test_the_list_is_read() -> None:
    assert len(ROWS) > 40


@pytest.mark.parametrize(("program", "file", "names"), [pytest.param(*row, id=row[0]) for row in ROWS])
def test_each_program_is_where_the_list_says(program: str, file: str, names: str) -> None:
    text = (FOLDER / file).read_text()
    found = re.findall(r'"[^"]+"|\w+', names)
    assert found
    for name in found:
        assert name.strip('"') in text, f"{program}: {name} is not in {file}"
