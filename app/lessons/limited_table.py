"""Markdown's rule for tables, for text that is not trusted: not for tables that are too large."""

from __future__ import annotations

from markdown_it.rules_block import StateBlock, table

MAX_TABLE_CELLS = 1_000
"""Per table. Missing cells of a row are filled in, so a short text could become a huge page."""


def limited_table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """The table rule, but not for tables that are too large."""
    return (silent or _count_table_cells(state, start, end) <= MAX_TABLE_CELLS) and table(state, start, end, silent)


def _count_table_cells(state: StateBlock, start: int, end: int) -> int:
    """The number of cells of the table that starts here; counting stops above the limit."""
    if start + 2 > end:
        return 0
    bars = state.src.count("|", state.bMarks[start + 1], state.eMarks[start + 1])
    cells = 0
    for line in range(start, end if bars else start):
        if state.isEmpty(line) or cells > MAX_TABLE_CELLS:
            break
        cells += bars + 1
    return cells
