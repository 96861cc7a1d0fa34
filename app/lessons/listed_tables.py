"""Tables that are not written with bars: ``{list-table}`` and ``{csv-table}`` as the tokens of a Markdown table."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence

from markdown_it.token import Token

from app.lessons.directives import Directive, LessonError, lesson_warning

MAX_TABLE_CELLS = 5_000
"""Per table. Rows below are not shown, which a warning says."""


def list_table_tokens(tokens: Sequence[Token], directive: Directive, faults: list[LessonError]) -> Iterator[Token]:
    """The table of a list of lists. Tokens that are no such list are kept as they are."""
    rows: list[list[list[Token]]] = []
    depth, start = 0, 0
    for i, token in enumerate(tokens):
        if token.nesting < 0:
            if token.type == "list_item_close" and depth == 4 and rows:
                rows[-1].append(_without_paragraph(tokens[start + 1 : i]))
            depth -= 1
        elif token.nesting > 0:
            depth += 1
            if token.type == "list_item_open" and depth == 2:
                rows.append([])
            elif token.type == "list_item_open" and depth == 4:
                start = i
    if not any(rows):
        yield from tokens
        return
    yield from table_tokens(rows, directive, faults)


def csv_rows(text: str, directive: Directive) -> list[list[list[Token]]]:
    """The rows of comma-separated values, each value as inline Markdown."""
    delimiter = {"tab": "\t", "space": " "}.get(directive.option("delim"), directive.option("delim")) or ","
    delimiter = delimiter if len(delimiter) == 1 else ","
    header = [directive.option("header")] if directive.option("header") else []
    lines = [*header, *text.split("\n")]
    try:
        values = [row for row in csv.reader(lines, delimiter=delimiter, skipinitialspace=True) if row]
    except csv.Error:
        values = [[line] for line in lines if line.strip()]
    return [[[_inline(value, directive)] for value in row] for row in _limited(values)]


def _limited(rows: Sequence[Sequence[str]]) -> Sequence[Sequence[str]]:
    """Rows that have more cells than a table may, and no others below them."""
    count = 0
    for number, row in enumerate(rows):
        if (count := count + len(row)) > MAX_TABLE_CELLS:
            return [*rows[:number], row[: MAX_TABLE_CELLS + 1]]
    return rows


def table_tokens(
    rows: Sequence[Sequence[Sequence[Token]]], directive: Directive, faults: list[LessonError]
) -> Iterator[Token]:
    """The tokens of a table with these cells. Short rows are filled up."""
    heads = _header_rows(directive)
    width = max((len(row) for row in rows), default=0)
    if not width:
        return
    if len(rows) * width > MAX_TABLE_CELLS:
        text = f"the table has more than {MAX_TABLE_CELLS:,} cells, so its last rows are not shown; split it"
        faults.append(lesson_warning(directive.line, text))
        rows = rows[: max(MAX_TABLE_CELLS // width, 1)]
    at = [directive.line - 1, directive.end_line]
    yield Token("table_open", "table", 1, map=at, block=True)
    for part, tag, inside in (("thead", "th", rows[:heads]), ("tbody", "td", rows[heads:])):
        if not inside:
            continue
        yield Token(f"{part}_open", part, 1, block=True)
        for row in inside:
            yield Token("tr_open", "tr", 1, block=True)
            for number in range(width):
                yield Token(f"{tag}_open", tag, 1, block=True)
                yield from row[number] if number < len(row) else [_inline("", directive)]
                yield Token(f"{tag}_close", tag, -1, block=True)
            yield Token("tr_close", "tr", -1, block=True)
        yield Token(f"{part}_close", part, -1, block=True)
    yield Token("table_close", "table", -1, block=True)


def _header_rows(directive: Directive) -> int:
    written = directive.option("header-rows")
    rows = int(written) if written.isascii() and written.isdigit() and len(written) < 3 else 0
    return rows + bool(directive.option("header"))


def _without_paragraph(tokens: Sequence[Token]) -> list[Token]:
    """The text of a cell that has one paragraph."""
    if len(tokens) == 3 and tokens[0].type == "paragraph_open":
        return list(tokens[1:2])
    return list(tokens)


def _inline(text: str, directive: Directive) -> Token:
    at = [directive.line - 1, directive.line]
    return Token("inline", "", 0, content=text.strip(), children=[], map=at, block=True)
