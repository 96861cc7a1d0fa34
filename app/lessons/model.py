"""What a lesson is once it has been read: frozen values, ready for a template, an export or a runner."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from markupsafe import Markup


class LessonStatus(StrEnum):
    """How far a lesson is in its life."""

    draft = "draft"
    published = "published"
    deprecated = "deprecated"


class CellTag(StrEnum):
    """What a cell's tag asks for; the names are Jupyter's."""

    hide_input = "hide-input"
    """The code is folded until the reader opens it."""
    remove_cell = "remove-cell"
    """The page leaves the cell out; ``lockstep lesson check`` and the notebook keep it."""
    skip_execution = "skip-execution"
    """The cell is shown to be read; ``lockstep lesson check`` does not run it."""
    raises_exception = "raises-exception"
    """The cell ends with an error on purpose."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of the prose: ``level`` is 2 for ``##``."""

    id: str
    text: str
    level: int


@dataclass(frozen=True, slots=True)
class Prose:
    """A stretch of prose between two cells. ``line`` is where it begins in the source, from 1."""

    html: Markup
    line: int


@dataclass(frozen=True, slots=True)
class Cell:
    """One code cell. ``line`` is where its code begins in the source, from 1."""

    name: str
    title: str
    language: str
    code: str
    line: int
    topology: str
    keras: int
    topologies: tuple[str, ...]
    """The machines a learner may pick from, in the author's order; ``topology`` is among them."""
    kerases: tuple[int, ...]
    """The versions of Keras a learner may pick from; ``keras`` is among them."""
    tags: frozenset[CellTag]
    expect: tuple[str, ...]
    """What its output has to contain, as ``app.lessons.expectations`` reads it."""
    highlighted: Markup
    """The code as HTML: spans with Pygments' short classes, to stand inside ``<code>``."""

    @property
    def has_choice(self) -> bool:
        """Whether a learner may pick another machine or another Keras."""
        return len(self.topologies) > 1 or len(self.kerases) > 1

    @property
    def group(self) -> str:
        """The same for all cells that start with the same and offer the same: they share one choice."""
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
    """Every language the lesson can be read in."""
    title: str
    summary: str
    minutes: int
    tags: tuple[str, ...]
    status: LessonStatus
    topology: str
    keras: int
    topologies: tuple[str, ...]
    kerases: tuple[int, ...]
    """As of a Cell: what cells have that say nothing of a machine themselves."""
    requires: tuple[str, ...]
    """Slugs of lessons of the same course to read first."""
    blocks: tuple[Block, ...]
    """What the page shows, in order: cells tagged ``remove-cell`` are not among them."""
    toc: tuple[Heading, ...]
    cells: tuple[Cell, ...]
    """Every cell, in order."""
    source: str
    source_path: Path
    digest: str
    """Changes whenever the lesson's files of text do."""
    number: int = 0
    """Its place in the course, from 1."""
    total: int = 0
    """How many lessons the course has."""

    @property
    def key(self) -> str:
        """``course/slug``: the lesson's name everywhere outside its own page."""
        return f"{self.course}/{self.slug}"

    def cell(self, name: str) -> Cell | None:
        """The cell of that name, if there is one."""
        return next((cell for cell in self.cells if cell.name == name), None)


@dataclass(frozen=True, slots=True)
class Module:
    """A part of a course: its lessons in order."""

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
        """The slugs of all its lessons, in order."""
        return tuple(slug for module in self.modules for slug in module.lessons)
