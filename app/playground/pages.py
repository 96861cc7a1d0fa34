"""The playground and its shared copies as lessons, so that their cells run like those of a lesson. Pure.

The learner's own playground is a lesson without cells: all that it shows are scratch cells. A shared copy is a lesson
with cells that come from the database. Neither is in the catalog, counts toward progress, or earns XP.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, TypeAdapter

from app.i18n import LANGUAGE_CODES, gettext
from app.lessons.highlight import highlight_learners_code
from app.lessons.model import Block, Cell, Lesson, LessonStatus, Prose
from app.lessons.untrusted_markdown import render_untrusted_texts
from app.runs.machines import Machine

COURSE = "~playground"
"""The first part of the keys of these lessons. No course can be called this."""
OWN = "mine"
"""The second part of the key of every learner's own playground."""
OWN_KEY = f"{COURSE}/{OWN}"
DEFAULT_MACHINE = Machine("gpu:4", 3)
TOPOLOGIES = ("gpu:4", "cpu", "gpu:2", "gpu:8", "tpu:8", "workers:2", "workers:2xgpu:2", "ps:2+1")
KERASES = (3, 2)


class SharedCell(BaseModel):
    """A cell of a shared copy."""

    kind: Literal["code", "text"]
    name: str
    title: str
    source: str


SharedCells = TypeAdapter(list[SharedCell])


def own_playground(language: str) -> Lesson:
    """Every learner's own playground."""
    return _lesson(OWN, language, gettext("Playground"), DEFAULT_MACHINE, (), ())


@lru_cache(maxsize=16)
def shared_playground(slug: str, language: str, title: str, machine: Machine, cells: str) -> Lesson:
    """A shared copy. Each page and each run of it needs this, and rendering it takes long."""
    blocks = tuple(_blocks(SharedCells.validate_json(cells), machine))
    code = tuple(block for block in blocks if isinstance(block, Cell))
    return _lesson(slug, language, title, machine, blocks, code)


def _blocks(cells: Sequence[SharedCell], machine: Machine) -> Iterable[Block]:
    highlighted = highlight_learners_code(cell.source for cell in cells if cell.kind == "code")
    texts = render_untrusted_texts(cell.source for cell in cells if cell.kind == "text")
    number = 0
    for cell in cells:
        if cell.kind == "text":
            yield Prose(next(texts), 1)
            continue
        number += 1
        yield Cell(
            name=cell.name,
            title=cell.title or gettext("Cell {number}").format(number=number),
            language="python",
            code=cell.source,
            line=1,
            topology=machine.topology,
            keras=machine.keras,
            topologies=TOPOLOGIES,
            kerases=KERASES,
            tags=frozenset(),
            expect=(),
            highlighted=next(highlighted),
        )


def _lesson(
    slug: str, language: str, title: str, machine: Machine, blocks: Sequence[Block], cells: Sequence[Cell]
) -> Lesson:
    return Lesson(
        course=COURSE,
        slug=slug,
        language=language,
        languages=LANGUAGE_CODES,
        title=title,
        summary="",
        minutes=1,
        tags=(),
        status=LessonStatus.published,
        topology=machine.topology,
        keras=machine.keras,
        topologies=TOPOLOGIES,
        kerases=KERASES,
        requires=(),
        blocks=tuple(blocks),
        toc=(),
        cells=tuple(cells),
        source="",
        source_path=Path(),
        digest=slug,
    )
