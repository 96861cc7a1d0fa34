"""Builds a Jupyter notebook (format 4.5) from a lesson, with the original code or a learner's code and outputs."""

from __future__ import annotations

import base64
import mimetypes
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from app.exports.latest_runs import MAX_OUTPUT_BYTES, CellRun, OutputsTooLarge
from app.exports.outputs import notebook_outputs, outputs_size
from app.exports.plain_markdown import CellPlaceholder, MarkdownPart, plain_markdown_parts
from app.exports.setup_cell import needs_other_machine, setup_code, setup_note, with_needs_comment
from app.i18n import use_language
from app.lessons.assets import read_asset
from app.lessons.errors import AssetNotFound
from app.lessons.model import Cell, CellTag, Lesson
from app.runs.models import ScratchCell
from app.runs.scratch_cells import as_cell

NOTEBOOK_FORMAT = (4, 5)
_THEME_COLOR = re.compile(rb"var\(--[\w-]+,\s*([^()]*)\)")
"""A color of the page's theme in a drawing, and the one without it: only browsers know the first."""


def build_notebook(
    lesson: Lesson,
    page: str,
    runs: Mapping[str, CellRun] | None = None,
    scratch: Mapping[str, Sequence[ScratchCell]] | None = None,
) -> NotebookNode:
    """Build the notebook. ``page`` is the full URL of the lesson's page; ``runs`` are by cell name, and ``scratch``
    are the learner's own cells by the name of the cell that they follow.

    Raises:
        OutputsTooLarge: the outputs exceed ``MAX_OUTPUT_BYTES``.
    """
    with use_language(lesson.language):
        runs = runs or {}
        setup = setup_code(lesson, (run.code for run in runs.values()))
        cells = [*_opening_cells(lesson, page, setup), *_body_cells(lesson, page, runs, scratch or {})]
    made = new_notebook(cells=cells, metadata=_metadata(lesson, page))
    made.nbformat, made.nbformat_minor = NOTEBOOK_FORMAT
    nbformat.validate(made)
    return made


def dump_notebook(made: NotebookNode) -> str:
    """The notebook as the text of an ``.ipynb`` file."""
    return str(nbformat.writes(made, version=NOTEBOOK_FORMAT[0]))


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
            "digest": lesson.source_digest,
            "url": page,
        },
    }


def _opening_cells(lesson: Lesson, page: str, setup: str) -> Iterable[NotebookNode]:
    title = f"# {lesson.title}\n\n{lesson.summary}\n\n<{page}>"
    yield new_markdown_cell(title, id="lockstep-title")
    yield new_markdown_cell(setup_note(lesson), id="lockstep-machine")
    yield new_code_cell(setup, id="lockstep-devices", metadata={"lockstep": {"setup": True}})


def _body_cells(
    lesson: Lesson, page: str, runs: Mapping[str, CellRun], scratch: Mapping[str, Sequence[ScratchCell]]
) -> Iterable[NotebookNode]:
    size = 0
    for made in _all_cells(lesson, page, runs, scratch):
        size += outputs_size(made.get("outputs", ()))
        if size > MAX_OUTPUT_BYTES:
            raise OutputsTooLarge
        yield made


def _all_cells(
    lesson: Lesson, page: str, runs: Mapping[str, CellRun], scratch: Mapping[str, Sequence[ScratchCell]]
) -> Iterable[NotebookNode]:
    left = iter(lesson.cells)
    yield from (_scratch_cell(lesson, own, runs) for own in scratch.get("", ()))
    for number, part in enumerate(plain_markdown_parts(lesson.source, page, lesson.source_path.parent), 1):
        match part:
            case MarkdownPart():
                yield _markdown_cell(lesson, part, f"lockstep-text-{number}")
            case CellPlaceholder():
                cell = next(left)
                yield _code_cell(lesson, cell, runs.get(cell.name))
                yield from (_scratch_cell(lesson, own, runs) for own in scratch.get(cell.name, ()))


def _scratch_cell(lesson: Lesson, own: ScratchCell, runs: Mapping[str, CellRun]) -> NotebookNode:
    """A cell that the learner has added. Its code is what is on the page; the output is there if that was what ran."""
    if own.kind == "text":
        return new_markdown_cell(own.source, id=own.name, metadata={"lockstep": {"scratch": True}})
    run = runs.get(own.name)
    made = _code_cell(lesson, as_cell(own, lesson), run if run is not None and run.code == own.source else None)
    made.id = own.name
    made.metadata.lockstep.scratch = True
    return made


def _markdown_cell(lesson: Lesson, text: MarkdownPart, cell_id: str) -> NotebookNode:
    markdown = _remove_title(text.markdown, lesson.title)
    attachments = {}
    for picture in sorted(text.pictures):
        try:
            asset = read_asset(lesson, picture.removeprefix("assets/"))
        except AssetNotFound:
            continue
        kind = mimetypes.guess_type(picture)[0] or "application/octet-stream"
        body = _THEME_COLOR.sub(rb"\1", asset.body) if kind == "image/svg+xml" else asset.body
        attachments[picture.replace("/", "-")] = {kind: base64.b64encode(body).decode()}
    cell = new_markdown_cell(markdown, id=cell_id)
    if attachments:
        cell.attachments = attachments
    return cell


def _remove_title(markdown: str, title: str) -> str:
    """Remove the title, which has its own cell."""
    first, _, rest = markdown.partition("\n")
    return rest.lstrip("\n") if first.strip() == f"# {title}" else markdown


def _code_cell(lesson: Lesson, cell: Cell, run: CellRun | None) -> NotebookNode:
    about = {"name": cell.name, "title": cell.title, "topology": cell.topology, "keras": cell.keras}
    code = run.code if run else cell.code
    tags = cell.tags | {CellTag.raises_exception} if cell.exercise else cell.tags  # "Run all" continues after a starter
    made = new_code_cell(
        with_needs_comment(cell, code) if needs_other_machine(cell, lesson) else code,
        id=f"cell-{cell.name}",
        metadata={"tags": sorted(tags), "lockstep": about} if tags else {"lockstep": about},
    )
    if run is not None:
        made.execution_count = run.order
        made.outputs = notebook_outputs(run.events, run.order)
    return made
