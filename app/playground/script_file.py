"""Divides a Python script into cells where ``# %%`` says so, as editors and jupytext write it. Pure.

This is not left to jupytext: the first lines of a file can make it expand YAML without end, or start marimo, and the
time that it takes grows with the square of the number of cells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from app.runs.scratch_cells import MAX_TITLE_LENGTH, NewCell

_HEADER = re.compile(r"(?:#!.*\n)?# ---\n(?:#.*\n)*?# ---(?:\n|\Z)")
"""Metadata of the notebook."""
_MARK = re.compile(r"[ \t]*#[ \t]*%%+(?:[ \t]+(?P<words>.*))?")
_LONGEST_MARK = 300
"""Characters after the mark that are read."""
_TEXT = re.compile(r"\[(?:markdown|md)\]")
_METADATA = re.compile(r"[\[{]|(?:^|\s)[\w.-]+\s*=")
_CELL_MAGIC = re.compile(r"[ \t]*# %%[A-Za-z]")
_LINE_MAGIC = re.compile(r"[ \t]*# (?:%{1,2}|!)[A-Za-z]")
"""Magics are comments in a script, which is to stay Python. One like ``%%bash`` has its whole cell in comments."""
_COMMENT = re.compile(r"^(?P<indent>[ \t]*)# ?")
_QUOTES = ('"""', "'''")


def read_script(text: str) -> list[NewCell]:
    """The cells of a script, some of them perhaps empty. The lines before the first mark are a cell, too."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    header = _HEADER.match(text)
    lines = text[header.end() if header else 0 :].split("\n")
    return [_read_cell(words, cell) for words, cell in _divide(lines)]


def _divide(lines: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """What follows the mark of each cell, and the cell's lines."""
    words, cell = "", list[str]()
    for line in lines:
        if mark := _MARK.fullmatch(line):
            yield words, cell
            words, cell = (mark["words"] or "")[:_LONGEST_MARK], []
        else:
            cell.append(line)
    yield words, cell


def _read_cell(words: str, lines: list[str]) -> NewCell:
    if _TEXT.search(words):
        return NewCell("text", _text(lines))
    metadata = _METADATA.search(words)
    title = (words[: metadata.start()] if metadata else words).strip()
    return NewCell("code", _code(lines), title if len(title) <= MAX_TITLE_LENGTH else "")


def _text(lines: Sequence[str]) -> str:
    """Text is in comments, or in a string of its own."""
    whole = "\n".join(lines).strip()
    for quotes in _QUOTES:
        if len(whole) >= 2 * len(quotes) and whole.startswith(quotes) and whole.endswith(quotes):
            return whole[len(quotes) : -len(quotes)]
    return "\n".join(map(_uncommented, lines))


def _code(lines: Sequence[str]) -> str:
    written = [line for line in lines if line.strip()]
    of_the_cell = bool(written) and _CELL_MAGIC.match(written[0]) and all(map(_COMMENT.match, written))
    return "\n".join(_uncommented(line) if of_the_cell or _LINE_MAGIC.match(line) else line for line in lines)


def _uncommented(line: str) -> str:
    return _COMMENT.sub(r"\g<indent>", line)
