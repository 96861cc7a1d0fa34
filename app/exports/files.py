"""A lesson as a file in each format, and a course as an archive of such files. No database, no request."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from app.errors import RequestTooLarge
from app.exports.chromium import BrowserUnavailable, print_pdf
from app.exports.latest_runs import CellRun
from app.i18n import N_
from app.lessons.model import Lesson
from app.runs.models import ScratchCell

MAX_CONVERTED_BYTES = 16_000_000
"""Larger notebooks are not converted to other formats."""
ExportFormat = Literal["ipynb", "html", "slides", "pdf", "py", "markdown"]
MEDIA_TYPES: Mapping[ExportFormat, str] = {
    "ipynb": "application/x-ipynb+json",
    "html": "text/html; charset=utf-8",
    "slides": "text/html; charset=utf-8",
    "pdf": "application/pdf",
    "py": "text/x-python; charset=utf-8",
    "markdown": "text/markdown; charset=utf-8",
}
_ENDINGS: Mapping[ExportFormat, str] = {"markdown": ".md", "slides": "-slides.html"}
_ZIP_DATE = (1980, 1, 1, 0, 0, 0)
"""The same content gives the same archive."""
ScratchByCell = Mapping[str, Sequence[ScratchCell]]
"""The learner's own cells of a lesson, by the name of the cell that they follow."""


class ExportTooLarge(RequestTooLarge):
    """The outputs are too large for any format but the notebook."""

    message = N_("Your outputs are too large for this format. Download the notebook instead.")


def file_name(name: str, form: ExportFormat) -> str:
    """The name of a lesson's file in a format."""
    return name + _ENDINGS.get(form, f".{form}")


def solution_runs(lesson: Lesson) -> Mapping[str, CellRun]:
    """The solutions of a lesson's exercises, in place of what a learner has run."""
    return {cell.name: CellRun(cell.exercise.solution) for cell in lesson.cells if cell.exercise is not None}


def lesson_file(
    form: ExportFormat,
    lesson: Lesson,
    page: str,
    runs: Mapping[str, CellRun],
    scratch: ScratchByCell,
    *,
    browser: Path | None = None,
    trusted: bool = False,
) -> bytes:
    """The lesson in a format. ``page`` is its address; ``browser`` prints PDFs, and ``trusted`` says that ``runs`` and
    ``scratch`` contain nothing from learners.

    Raises:
        OutputsTooLarge, ExportTooLarge: the outputs are too large.
        BrowserUnavailable: there is no browser, or it failed.
    """
    from app.exports.notebook import build_notebook, dump_notebook  # nbformat takes 0.2 s, so not at the start

    made = build_notebook(lesson, page, runs, scratch)
    text = dump_notebook(made)
    if form == "ipynb":
        return text.encode()
    if len(text) > MAX_CONVERTED_BYTES:
        raise ExportTooLarge
    from app.exports.convert import CONVERTERS  # nbconvert takes a second and 25 MB, so not at the start

    if form != "pdf":
        return CONVERTERS[form](made).encode()
    if browser is None:
        raise BrowserUnavailable("PDFs need Chromium or Chrome; install one of them")
    return print_pdf(CONVERTERS["html"](made), browser, trusted=trusted)


class CourseArchive:
    """A zip of a course's lessons, in the order in which they are added, with the paths that links to Colab name."""

    def __init__(self, form: ExportFormat) -> None:
        self._form = form
        self._buffer = io.BytesIO()
        self._archive = zipfile.ZipFile(self._buffer, "w", zipfile.ZIP_DEFLATED)

    def add(self, lesson: Lesson, content: bytes) -> None:
        """Add a lesson's file."""
        name = f"{lesson.course}/{file_name(lesson.slug, self._form)}"
        self._archive.writestr(zipfile.ZipInfo(name, _ZIP_DATE), content, zipfile.ZIP_DEFLATED)

    def finish(self) -> bytes:
        """The archive, which is complete."""
        self._archive.close()
        return self._buffer.getvalue()
