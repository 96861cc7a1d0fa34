"""Markdown's rule for tables, but not for tables that are too large.

Missing cells of a row are filled in, so a short text could become a huge page.
"""

from __future__ import annotations

from markdown_it.rules_block import StateBlock, table

MAX_TABLE_CELLS = 1_000
"""Per table of a text that is not trusted."""
MAX_LESSON_CELLS = 20_000
"""Of all tables of a lesson together."""


def limited_table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """The rule for text that is not trusted."""
    cells = 0 if silent else _count_table_cells(state, start, end, MAX_TABLE_CELLS)
    return cells <= MAX_TABLE_CELLS and table(state, start, end, silent)


def lesson_table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """The rule for lessons. Counts in ``env["table_cells"]``; above the limit, a table stays text."""
    if silent or not table(state, start, end, True):
        return table(state, start, end, silent)
    left = MAX_LESSON_CELLS - state.env.get("table_cells", 0)
    cells = _count_table_cells(state, start, end, left)
    state.env["table_cells"] = state.env.get("table_cells", 0) + cells
    return cells <= left and table(state, start, end, silent)


def _count_table_cells(state: StateBlock, start: int, end: int, most: int) -> int:
    """The number of cells of the table that starts here; counting stops above ``most``."""
    if start + 2 > end:
        return 0
    bars = state.src.count("|", state.bMarks[start + 1], state.eMarks[start + 1])
    cells = 0
    for line in range(start, end if bars else start):
        if state.isEmpty(line) or cells > most:
            break
        cells += bars + 1
    return cells
