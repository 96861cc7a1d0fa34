"""A rendered lesson as frozen values, for templates, exports and the runner."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from markupsafe import Markup


class LessonStatus(StrEnum):
    """The publication status of a lesson."""

    draft = "draft"
    published = "published"
    deprecated = "deprecated"


class CellTag(StrEnum):
    """The effect of a cell's tag; the names are Jupyter's."""

    hide_input = "hide-input"
    """The code is collapsed until the reader opens it."""
    remove_cell = "remove-cell"
    """The page omits the cell; ``lockstep lesson check`` and the notebook include it."""
    skip_execution = "skip-execution"
    """The cell is only shown; ``lockstep lesson check`` does not run it."""
    raises_exception = "raises-exception"
    """The cell is meant to end with an error."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; ``level`` is 2 for ``##``."""

    id: str
    text: str
    level: int


@dataclass(frozen=True, slots=True)
class Prose:
    """The prose between two cells. ``line`` is its first line in the source, from 1."""

    html: Markup
    line: int


@dataclass(frozen=True, slots=True)
class Cell:
    """A code cell. ``line`` is the first line of its code in the source, from 1."""

    name: str
    title: str
    language: str
    code: str
    line: int
    topology: str
    keras: int
    topologies: tuple[str, ...]
    """The machines that a learner may choose from, in the author's order, including ``topology``."""
    kerases: tuple[int, ...]
    """The versions of Keras that a learner may choose from, including ``keras``."""
    tags: frozenset[CellTag]
    expect: tuple[str, ...]
    """What its output must contain (see ``app.lessons.expectations``)."""
    highlighted: Markup
    """The code as HTML for a ``<code>`` element: spans with Pygments' short classes."""

    @property
    def has_choice(self) -> bool:
        """Whether a learner can choose another machine or version of Keras."""
        return len(self.topologies) > 1 or len(self.kerases) > 1

    @property
    def group(self) -> str:
        """The same for all cells with the same default and choices: they share the learner's choice."""
        topologies, kerases = " ".join(self.topologies), " ".join(map(str, self.kerases))
        return f"{self.topology} of {topologies}, {self.keras} of {kerases}"


Block = Prose | Cell


@dataclass(frozen=True, slots=True)
class Lesson:
    """One lesson in one language."""

    course: str
    slug: str
    language: str
    languages: tuple[str, ...]
    """All languages of the lesson."""
    title: str
    summary: str
    minutes: int
    tags: tuple[str, ...]
    status: LessonStatus
    topology: str
    keras: int
    topologies: tuple[str, ...]
    kerases: tuple[int, ...]
    """As in Cell; the values of cells that set none."""
    requires: tuple[str, ...]
    """Slugs of lessons of the same course to read first."""
    blocks: tuple[Block, ...]
    """What the page shows, in order, without cells tagged ``remove-cell``."""
    toc: tuple[Heading, ...]
    cells: tuple[Cell, ...]
    """All cells, in order."""
    source: str
    source_path: Path
    digest: str
    """Changes whenever the text of the lesson's files changes."""
    number: int = 0
    """Its position in the course, from 1."""
    total: int = 0
    """The number of lessons in the course."""

    @property
    def key(self) -> str:
        """``course/slug``: identifies the lesson outside its own page."""
        return f"{self.course}/{self.slug}"

    def cell(self, name: str) -> Cell | None:
        """The cell with this name, if it exists."""
        return next((cell for cell in self.cells if cell.name == name), None)


@dataclass(frozen=True, slots=True)
class Module:
    """A part of a course, with its lessons in order."""

    slug: str
    title: str
    lessons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Course:
    """A course in one language."""

    slug: str
    title: str
    summary: str
    modules: tuple[Module, ...]

    @property
    def lessons(self) -> tuple[str, ...]:
        """The slugs of all lessons, in order."""
        return tuple(slug for module in self.modules for slug in module.lessons)
