"""A lesson as a Jupyter notebook (format 4.5), with its original code or with a learner's code and outputs."""

from __future__ import annotations

import base64
import mimetypes
from collections.abc import Iterable, Mapping
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from app.exports.markdown import CellHere, Text, plain_parts
from app.exports.outputs import outputs_of, size_of
from app.exports.service import MOST_OUTPUT_BYTES, CellRun, OutputsTooLarge
from app.exports.setup_cell import needs_more, setup_code, setup_note, with_needs
from app.i18n import speaking
from app.lessons.assets import read_asset
from app.lessons.errors import AssetUnknown
from app.lessons.model import Cell, Lesson

FORMAT = (4, 5)


def notebook(lesson: Lesson, page: str, runs: Mapping[str, CellRun] | None = None) -> NotebookNode:
    """Make the notebook. ``page`` is the whole address of the lesson's page; ``runs`` are by the cell's name.

    Raises:
        OutputsTooLarge: the outputs count more than ``MOST_OUTPUT_BYTES``.
    """
    with speaking(lesson.language):
        runs = runs or {}
        setup = setup_code(lesson, (run.code for run in runs.values()))
        cells = [*_opening(lesson, page, setup), *_body(lesson, page, runs)]
    made = new_notebook(cells=cells, metadata=_metadata(lesson, page))
    made.nbformat, made.nbformat_minor = FORMAT
    nbformat.validate(made)
    return made


def as_text(made: NotebookNode) -> str:
    """The notebook as the text of an ``.ipynb`` file."""
    return str(nbformat.writes(made, version=FORMAT[0]))


def _metadata(lesson: Lesson, page: str) -> dict[str, Any]:
    return {
        "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
        "language_info": {"name": "python", "file_extension": ".py", "mimetype": "text/x-python"},
        "lockstep": {
            "lesson": lesson.key,
            "language": lesson.language,
            "title": lesson.title,
            "topology": lesson.topology,
            "keras": lesson.keras,
            "digest": lesson.digest,
            "url": page,
        },
    }


def _opening(lesson: Lesson, page: str, setup: str) -> Iterable[NotebookNode]:
    title = f"# {lesson.title}\n\n{lesson.summary}\n\n<{page}>"
    yield new_markdown_cell(title, id="lockstep-title")
    yield new_markdown_cell(setup_note(lesson), id="lockstep-machine")
    yield new_code_cell(setup, id="lockstep-devices", metadata={"lockstep": {"setup": True}})


def _body(lesson: Lesson, page: str, runs: Mapping[str, CellRun]) -> Iterable[NotebookNode]:
    left, size = iter(lesson.cells), 0
    for number, part in enumerate(plain_parts(lesson.source, page), 1):
        match part:
            case Text():
                yield _markdown_cell(lesson, part, f"lockstep-text-{number}")
            case CellHere():
                cell = next(left)
                made = _code_cell(lesson, cell, runs.get(cell.name))
                size += size_of(made.outputs)
                if size > MOST_OUTPUT_BYTES:
                    raise OutputsTooLarge
                yield made


def _markdown_cell(lesson: Lesson, text: Text, cell_id: str) -> NotebookNode:
    markdown = _without_title(text.markdown, lesson.title)
    attachments = {}
    for picture in sorted(text.pictures):
        try:
            asset = read_asset(lesson, picture.removeprefix("assets/"))
        except AssetUnknown:
            continue
        kind = mimetypes.guess_type(picture)[0] or "application/octet-stream"
        attachments[picture.replace("/", "-")] = {kind: base64.b64encode(asset.body).decode()}
    cell = new_markdown_cell(markdown, id=cell_id)
    if attachments:
        cell.attachments = attachments
    return cell


def _without_title(markdown: str, title: str) -> str:
    """The title has a cell of its own."""
    first, _, rest = markdown.partition("\n")
    return rest.lstrip("\n") if first.strip() == f"# {title}" else markdown


def _code_cell(lesson: Lesson, cell: Cell, run: CellRun | None) -> NotebookNode:
    about = {"name": cell.name, "title": cell.title, "topology": cell.topology, "keras": cell.keras}
    code = run.code if run else cell.code
    made = new_code_cell(
        with_needs(cell, code) if needs_more(cell, lesson) else code,
        id=f"cell-{cell.name}",
        metadata={"tags": sorted(cell.tags), "lockstep": about} if cell.tags else {"lockstep": about},
    )
    if run is not None:
        made.execution_count = run.order
        made.outputs = outputs_of(run.events, run.order)
    return made
