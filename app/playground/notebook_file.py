"""Reads a notebook, a script or a data file that a learner opens: its code and its text, and nothing else. Pure.

A data file becomes a cell that writes it to the session's folder, so that it is kept, shared and downloaded with the
rest, and is there again in another session.

Outputs, attachments and metadata are dropped before anything else looks at them. nbformat is imported when the first
notebook is opened: that takes seconds, so call this in a thread.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from app.errors import InvalidInput
from app.playground.errors import (
    DataFileTooLarge,
    ForeignNotebook,
    InvalidDataFileName,
    InvalidNotebook,
    NothingToOpen,
)
from app.playground.script_file import read_script
from app.runs.scratch_cells import NewCell, check_cell_count

if TYPE_CHECKING:
    import nbformat

_VERSION = 4
_MOST_READ = 1_000
"""Cells of a notebook, with those that are empty or of another kind. Each takes nbformat a millisecond."""
_LOWEST_HEADING = 6
MAX_DATA_BYTES = 90_000
"""Less than a cell can have, in UTF-8."""
_DATA_ENDINGS = (".csv", ".tsv", ".txt", ".json", ".jsonl")
_DATA_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", re.ASCII)


def read_notebook_file(name: str, text: str) -> list[NewCell]:
    """The cells of a file with this name.

    Raises:
        InvalidNotebook, ForeignNotebook, NothingToOpen: there is nothing in it that could be shown here.
        TooManyScratchCells: no page could show all of them.
        InvalidDataFileName, DataFileTooLarge: no cell can write the file.
    """
    if name.lower().endswith(_DATA_ENDINGS):
        return [_read_data(name, text)]
    found = read_script(text) if name.lower().endswith(".py") else map(_as_new_cell, _read_notebook(text).cells)
    cells = [replace(cell, source=cell.source.strip("\n")) for cell in found if cell and cell.source.strip()]
    if not cells:
        raise NothingToOpen
    check_cell_count(len(cells))
    return cells


def _read_data(name: str, text: str) -> NewCell:
    """The cell that writes the file. Lines end as they do on the machine that it is written on."""
    if not _DATA_NAME.fullmatch(name):
        raise InvalidDataFileName
    if len(text.encode("utf-8", "surrogatepass")) > MAX_DATA_BYTES:
        raise DataFileTooLarge(most=MAX_DATA_BYTES // 1000)
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")
    if not lines.strip():
        raise NothingToOpen
    return NewCell("code", f"%%writefile {name}\n{lines}", name)


def _read_notebook(text: str) -> nbformat.NotebookNode:
    import nbformat

    try:
        found = json.loads(text)
        spec = found.get("metadata", {}).get("kernelspec", {})
        language = spec.get("language", "python")
        made = nbformat.reads(json.dumps(_without_outputs(found)), as_version=_VERSION)
        for cell in made.cells:
            _check_cell(cell)
    except InvalidInput:
        raise
    except Exception as e:  # nbformat trusts its files: others fail wherever they differ from what it expects
        raise InvalidNotebook from e
    if not str(language).lower().startswith(("python", "ipython")):
        raise ForeignNotebook(language=str(language)[:40])
    return made


def _without_outputs(found: dict[str, Any]) -> dict[str, Any]:
    """The same notebook with only the kind and the source of each cell. Old notebooks have worksheets of cells."""
    version = int(found["nbformat"])
    sheets = [found] if version >= _VERSION else found["worksheets"]
    if (count := sum(max(1, len(sheet["cells"])) for sheet in sheets)) > _MOST_READ:
        check_cell_count(count)
    if version >= _VERSION:
        parts = {"nbformat": version, "nbformat_minor": 4, "metadata": {}}  # from 5 on, cells have IDs
        return parts | {"cells": [_bare_cell(cell) for cell in found["cells"]]}
    bare = [{"cells": [_bare_old_cell(cell) for cell in sheet["cells"]]} for sheet in sheets]
    return {"nbformat": version, "nbformat_minor": 0, "metadata": {}, "worksheets": bare}


def _bare_cell(cell: dict[str, Any]) -> dict[str, Any]:
    code: dict[str, Any] = {"outputs": [], "execution_count": None} if cell["cell_type"] == "code" else {}
    return {"cell_type": cell["cell_type"], "metadata": {}, "source": cell.get("source", "")} | code


def _bare_old_cell(cell: dict[str, Any]) -> dict[str, Any]:
    if cell["cell_type"] != "code":
        # nbformat writes as many number signs, however many gigabytes they take
        level = {"level": min(int(cell["level"]), _LOWEST_HEADING)} if cell["cell_type"] == "heading" else {}
        return {"cell_type": cell["cell_type"], "metadata": {}, "source": cell.get("source", "")} | level
    return {"cell_type": "code", "metadata": {}, "input": cell.get("input", ""), "outputs": [], "language": "python"}


def _check_cell(cell: nbformat.NotebookNode) -> None:
    if not isinstance(cell.source, str):
        raise TypeError("the source of a cell is not text")


def _as_new_cell(cell: nbformat.NotebookNode) -> NewCell | None:
    source = cell.source.replace("\r\n", "\n").replace("\r", "\n")
    match cell.cell_type:
        case "code":
            return NewCell("code", source)
        case "markdown":
            return NewCell("text", source)
        case _:
            return None
