"""Tables as CSV that is safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

BYTE_ORDER_MARK = "\ufeff"
"""Begins a file that spreadsheets are to read as UTF-8: Excel takes one without it for the code page of the machine."""
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def to_csv(rows: Iterable[Sequence[str]]) -> str:
    """Rows as CSV that no spreadsheet takes for formulas: a cell that begins like one gets an apostrophe. Pure."""
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows([_inert(cell) for cell in row] for row in rows)
    return text.getvalue()


def _inert(cell: str) -> str:
    return f"'{cell}" if cell.lstrip(" ").startswith(_FORMULA_STARTS) else cell
