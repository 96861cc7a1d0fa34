"""Tables as CSV: no cell is taken for a formula."""

from __future__ import annotations

import csv

import pytest

from app.web.csv_table import to_csv


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", " =", "＝"])
def test_no_cell_of_the_csv_begins_a_formula(start: str) -> None:
    text = to_csv([[f"{start}cmd|' /C calc'!A0", 'a "quoted" word', "plain"]])

    assert next(csv.reader([text], strict=True)) if "\r" not in start else text
    assert text.startswith(f"\"'{start}cmd")
    assert text.rstrip("\r\n").endswith('"a ""quoted"" word","plain"')
