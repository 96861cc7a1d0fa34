"""The page about OWASP ASVS has a row for each requirement, and every file and test that it names exists."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "develop" / "security.md").read_text()
ROWS: list[tuple[str, str, str]] = re.findall(
    r"^\| ([0-9]\S*(?: (?:to|and) \S+)?) \| [^|]+ \| (met|not applicable|open) \| (.+) \|$", PAGE, re.MULTILINE
)
"""Requirement, status, and evidence or reason."""
REQUIREMENTS = dict(enumerate((27, 11, 19, 10, 9, 35, 18, 7, 7, 29, 14, 9, 13, 9, 13, 16, 7), 1))
"""How many of levels 1 and 2 each chapter of ASVS 5.0.0 has."""
TESTS = {
    name
    for file in (ROOT / "tests").rglob("test_*.py")
    for name in re.findall(r"^(?:async )?def (test_\w+)", file.read_text(), re.MULTILINE)
}


def numbers(cell: str) -> list[str]:
    """Each requirement of a row: ``1.2.6 to 1.2.8`` are three."""
    first, _, last = cell.replace(" and ", " to ").partition(" to ")
    section, _, at = first.rpartition(".")
    return [f"{section}.{n}" for n in range(int(at), int((last or first).rpartition(".")[2]) + 1)]


def test_each_requirement_has_one_row() -> None:
    rows = [number for cell, _, _ in ROWS for number in numbers(cell)]

    assert len(rows) == len(set(rows))
    assert Counter(int(number.partition(".")[0]) for number in rows) == REQUIREMENTS


def test_the_page_counts_its_rows() -> None:
    rows = Counter(status for cell, status, _ in ROWS for _ in numbers(cell))

    for status, count in rows.items():
        assert re.search(rf"^\| {status} \| .+ \| {count} \|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_what_a_row_names_exists(row: tuple[str, str, str]) -> None:
    _, status, text = row
    tests = set(re.findall(r"`(test_\w+)`", text))
    files = set(re.findall(r"`([\w./-]*\.\w+|[\w-]+/)`", text))

    assert tests <= TESTS
    assert [file for file in files if not (ROOT / file).exists()] == []
    if status == "met":
        assert tests or files or re.search(r"\]\(|\bas [0-9]+\.[0-9]", text), "a requirement is met by something"


def test_each_attack_names_tests_that_exist() -> None:
    chapter = PAGE.partition("## Attacks and the tests that repeat them")[2]
    rows = re.findall(r"^\| (\d+): .+ \| (`test_\w+`(?:, `test_\w+`)*) \|$", chapter, re.MULTILINE)

    assert [int(number) for number, _ in rows] == [*range(1, 13), *range(1, 8)]
    assert {name for _, tests in rows for name in re.findall(r"\w+", tests)} <= TESTS
