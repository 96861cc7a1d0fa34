"""Reads Jupyter and Colab notebooks, formats 3 to 4.5, without trusting anything in them.

The file is JSON of a simple shape, so it is read directly: nbformat would convert and validate outputs and widgets,
which an import drops, and its errors do not name the cell.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from app.imports.report import CannotImport, Report
from app.imports.source import CodeSegment, SourceDocument, TextSegment, decode, is_python, printable, read_markdown

_FORMATS = (3, 4)
MAX_CELLS = 5_000
_OWN_CELLS = ("lockstep-title", "lockstep-machine", "lockstep-devices")
"""The IDs of the cells that Lockstep's own notebooks begin with."""


def read_notebook(path: PurePosixPath, content: bytes, report: Report) -> SourceDocument:
    """Read a notebook.

    Raises:
        CannotImport: it is not a notebook in Python.
    """
    file = str(path)
    found = _parse_json(content)
    metadata = _mapping(found.get("metadata"))
    language = _language(metadata)
    if not is_python(language):
        raise CannotImport(f"its cells are in {language[:40]!r}; Lockstep runs Python")
    own = _mapping(metadata.get("lockstep"))
    machine = {key: str(own[key]) for key in ("topology", "keras") if key in own}
    document = SourceDocument(path, [], title=_text(own.get("title")) or "", machine=machine)
    for number, cell in enumerate(_cells(found), 1):
        document.segments += _segments(cell, file, number, report)
    _use_leading_front_matter(document, report)
    _note_outputs(found, file, report)
    if "widgets" in metadata:
        report.note(file, "state of widgets dropped")
    return document


def _parse_json(content: bytes) -> dict[str, Any]:
    text = decode(content)
    try:
        found = json.loads(text)
    except json.JSONDecodeError as e:
        raise CannotImport(
            f"this is not a notebook: line {e.lineno}, column {e.colno} is not JSON ({e.msg}); save it in Jupyter"
        ) from e
    except (RecursionError, ValueError) as e:
        raise CannotImport("this is not a notebook: its JSON is nested too deeply or has too long numbers") from e
    version = found.get("nbformat") if isinstance(found, dict) else None
    if version not in _FORMATS:
        what = "it has no 'nbformat'" if version is None else f"its format is {str(version)[:20]}"
        raise CannotImport(f"this is not a notebook of format 3 or 4: {what}; open it in JupyterLab and save it")
    return dict(found)


def _cells(found: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    sheets = found.get("worksheets") if found["nbformat"] == 3 else [found]
    lists = [sheet.get("cells") for sheet in sheets if isinstance(sheet, dict)] if isinstance(sheets, list) else []
    if not lists or not all(isinstance(cells, list) for cells in lists):
        raise CannotImport("this notebook has no list of cells; open it in JupyterLab and save it")
    cells = [cell for listed in lists for cell in listed or ()]
    if len(cells) > MAX_CELLS:
        raise CannotImport(f"it has {len(cells):,} cells, and the limit is {MAX_CELLS:,}; split it")
    for number, cell in enumerate(cells, 1):
        if not isinstance(cell, dict):
            raise CannotImport(f"cell {number} is not a cell; open the notebook in JupyterLab and save it")
    return cells


def _segments(cell: Mapping[str, Any], file: str, number: int, report: Report) -> Iterator[TextSegment | CodeSegment]:
    place = f"{file}, cell {number}"
    kind = str(cell.get("cell_type"))
    source = _text(cell.get("source", cell.get("input", "")))
    if source is None:
        raise CannotImport(f"the source of cell {number} is not text; open the notebook in JupyterLab and save it")
    source = printable(source.replace("\r\n", "\n").replace("\r", "\n"), place, report)
    metadata = _mapping(cell.get("metadata"))
    if cell.get("id") in _OWN_CELLS or _mapping(metadata.get("lockstep")).get("setup"):
        report.note(place, "cell dropped: a lesson says this by itself")
    elif not source.strip():
        report.note(place, "empty cell dropped")
    elif kind == "code":
        yield _code(cell, source, metadata, place, report)
    elif kind in ("markdown", "html"):
        yield TextSegment(source, file, number, _attachments(cell))
    elif kind == "heading":
        level = cell.get("level", 1)
        level = level if isinstance(level, int) and 1 <= level <= 6 else 1
        yield TextSegment(f"{'#' * level} {' '.join(source.split())}", file, number)
    elif kind == "raw" and number == 1 and source.lstrip().startswith("---"):
        yield TextSegment(source, file, number)
    else:
        report.note(place, f"cell of type '{kind[:20]}' kept as a code block: it is for a converter, not for readers")
        fence = "`" * max(3, _longest_run(source) + 1)
        yield TextSegment(f"{fence}text\n{source}\n{fence}", file, number)


def _longest_run(text: str) -> int:
    longest = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    return longest


def _code(cell: Mapping[str, Any], source: str, metadata: Mapping[str, Any], place: str, report: Report) -> CodeSegment:
    own = _mapping(metadata.get("lockstep"))
    given = metadata.get("tags")
    tags = [str(tag) for tag in given if isinstance(tag, str)] if isinstance(given, list) else []
    jupyter = _mapping(metadata.get("jupyter"))
    if metadata.get("cellView") == "form" or jupyter.get("source_hidden") is True:
        tags.append("hide-input")
    if jupyter.get("outputs_hidden") is True or metadata.get("collapsed") is True:
        tags.append("hide-output")
    if "nbgrader" in metadata:
        report.note(place, "nbgrader's marks dropped: see docs/teach/exercises.md for exercises that Lockstep judges")
    name = _text(own.get("name")) or _text(metadata.get("name")) or ""
    if own:
        lines = source.split("\n")
        source = "\n".join(line for i, line in enumerate(lines) if i > 1 or not line.startswith("# Needs "))
    return CodeSegment(source, place, name, _text(own.get("title")) or "", tuple(dict.fromkeys(tags)))


def _attachments(cell: Mapping[str, Any]) -> dict[str, Mapping[str, str]]:
    return {
        str(name): {str(kind): text for kind, data in bundle.items() if (text := _text(data)) is not None}
        for name, bundle in _mapping(cell.get("attachments")).items()
        if isinstance(bundle, dict)
    }


def _use_leading_front_matter(document: SourceDocument, report: Report) -> None:
    """jupytext and Quarto keep the front matter of a notebook in its first cell."""
    first = document.segments[0] if document.segments else None
    if not isinstance(first, TextSegment) or not first.text.lstrip().startswith("---\n"):
        return
    front = read_markdown(document.path, first.text.lstrip().encode(), report)
    (rest,) = front.segments
    assert isinstance(rest, TextSegment)
    if rest.text.strip() == first.text.strip():  # a line across the page
        return
    document.segments[:1] = [TextSegment(rest.text, first.file, first.cell)] if rest.text.strip() else []
    document.title = document.title or front.title
    document.summary, document.tags = front.summary, front.tags
    document.machine = dict(document.machine) or front.machine


def _note_outputs(found: Mapping[str, Any], file: str, report: Report) -> None:
    with_output = sum(bool(cell.get("outputs")) for cell in _cells(found))
    if with_output:
        cells = "1 cell" if with_output == 1 else f"{with_output} cells"
        report.note(file, f"outputs of {cells} dropped: learners see them when they run the code")


def _language(metadata: Mapping[str, Any]) -> str:
    found = _mapping(metadata.get("language_info")).get("name") or _mapping(metadata.get("kernelspec")).get("language")
    return found if isinstance(found, str) and found else "python"


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    """A text, or the lines of one; None if it is neither."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "".join(value)
    return None
