"""Edits that a page sends when it asks for a download: what a visitor has not run is only in their browser. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import TypeAdapter, ValidationError

from app.errors import InvalidInput
from app.exports.latest_runs import CellRun
from app.i18n import gettext
from app.lessons.model import Lesson
from app.runs.service import check_code

_BY_CELL = TypeAdapter(dict[str, str])


def parse_edits(text: str, lesson: Lesson) -> Mapping[str, str]:
    """The code of each cell that was edited, from a JSON object. A cell that the lesson no longer has is left out.

    Raises:
        InvalidInput: it is not such an object.
        CodeTooLong, InvalidCode: code that no cell can have.
    """
    try:
        edits = _BY_CELL.validate_json(text, strict=True)
    except ValidationError as e:
        raise InvalidInput(reason=gettext("it is not form data")) from e
    found: dict[str, str] = {}
    for name, code in edits.items():
        if (cell := lesson.cell(name)) is not None:
            check_code(code)
            found[cell.name] = code
    return found


def with_edits(runs: Mapping[str, CellRun], edits: Mapping[str, str]) -> Mapping[str, CellRun]:
    """What a file shows in each cell. Code that was edited after its run has no output."""
    changed = {name: CellRun(code) for name, code in edits.items() if name not in runs or runs[name].code != code}
    return {**runs, **changed}
