"""A rendered lesson as frozen values, for templates, exports and the runner."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import ClassVar, Literal

from markupsafe import Markup


class LessonStatus(StrEnum):
    draft = "draft"
    published = "published"
    deprecated = "deprecated"


class CellTag(StrEnum):
    """The effect of a cell's tag. All names but ``exercise`` are Jupyter's."""

    hide_input = "hide-input"
    """The code is collapsed until the reader opens it."""
    remove_cell = "remove-cell"
    """The page omits the cell; ``lockstep lesson check`` and the notebook include it."""
    skip_execution = "skip-execution"
    """The cell is only shown; ``lockstep lesson check`` does not run it."""
    raises_exception = "raises-exception"
    """The cell is meant to end with an error."""
    exercise = "exercise"
    """The learner completes the cell, and the checks of `checks.py` judge it."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; ``level`` is 2 for ``##``."""

    id: str
    text: str
    level: int


@dataclass(frozen=True, slots=True)
class Prose:
    """The prose between two cells. ``line`` is its first line in the source, from 1."""

    block_kind: ClassVar[str] = "prose"
    html: Markup
    line: int


@dataclass(frozen=True, slots=True)
class Check:
    """A check of an exercise, declared in ``checks.py``."""

    name: str
    """The English name, which identifies the check in events, verdicts, and the ledger."""
    title: str
    """The name in the lesson's language."""
    xp: int
    hints: tuple[str, ...]
    """In the lesson's language, in the order in which a learner may open them."""


@dataclass(frozen=True, slots=True)
class WrongAnswer:
    """A file in ``wrong/``: a submission that must fail with the diagnosis named in the file."""

    path: Path
    diagnosis: str
    """Text that the message of a failed check must contain."""
    code: str


@dataclass(frozen=True, slots=True)
class Exercise:
    """The exercise in a cell. The page shows ``task`` and ``checks``; the rest stays on the server."""

    needs: tuple[str, ...]
    """The cells that run before a submission, in this order."""
    seconds: int
    """How long the submitted cell, and each call of it, may take."""
    xp: int
    """For passing all checks, in addition to the XP of each check."""
    solution: str
    """The whole cell with the author's solution."""
    task: Markup
    """The prose of ``{exercise}``, its title included; empty if there is none."""
    solution_prose: Markup
    """The prose of ``{solution}``; empty if there is none."""
    checks: tuple[Check, ...]
    checks_source: str
    """The text of ``checks.py``. The app reads it and never runs it."""
    translations: Mapping[str, str]
    """English sentences in ``checks.py`` to their translations in the lesson's language; empty for English."""
    sentences: tuple[str, ...] = ()
    """The literal sentences in ``checks.py``, in English: what its checks may say about a submission."""
    wrong_answers: tuple[WrongAnswer, ...] = ()
    is_reviewed: bool = False
    """Whether instructors review what has passed the checks."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A code cell. ``line`` is the first line of its code in the source, from 1."""

    block_kind: ClassVar[str] = "cell"
    name: str
    title: str
    language: str
    code: str
    """The code that learners get; for an exercise, the starter."""
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
    exercise: Exercise | None = None
    was: tuple[str, ...] = ()
    """Former names."""

    @property
    def has_choice(self) -> bool:
        """Whether a learner can choose another machine or version of Keras."""
        return len(self.topologies) > 1 or len(self.kerases) > 1

    @property
    def group(self) -> str:
        """The same for all cells with the same default and choices: they share the learner's choice."""
        return _choice_group(self)


@dataclass(frozen=True, slots=True)
class Choice:
    """One choice of a quiz or a prediction. Only ``html`` is for everyone."""

    html: Markup
    text: str
    """``html`` without markup."""
    correct: bool
    feedback: Markup


@dataclass(frozen=True, slots=True)
class Quiz:
    """A question with choices. ``line`` is its first line in the source, from 1."""

    block_kind: ClassVar[str] = "quiz"
    name: str
    question: Markup
    """One line, without a block."""
    prose: Markup
    """What comes between the question and its choices; often empty."""
    choices: tuple[Choice, ...]
    line: int
    was: tuple[str, ...] = ()
    """Former names."""

    @property
    def several(self) -> bool:
        """Whether more than one choice is correct, so that a learner can choose several."""
        return sum(choice.correct for choice in self.choices) > 1


@dataclass(frozen=True, slots=True)
class Prediction:
    """A guess before a run. ``line`` is its first line in the source, from 1."""

    block_kind: ClassVar[str] = "prediction"
    name: str
    cell: str
    """The name of the cell whose run answers it."""
    kind: Literal["number", "choice", "order"]
    question: Markup
    """One line, without a block."""
    prose: Markup
    """What comes below the question; often empty."""
    unit: str
    answer: float | None
    """The number, if the lesson states it; otherwise, ``source`` tells where the run prints it."""
    tolerance: str
    """How far a guess may be off: `0.5` in the number's unit, or `5%` of it; empty means that it must be exact."""
    source: str | None
    """Text that the run prints: for a number, with ``{number}`` in its place; for a choice, text that proves it."""
    choices: tuple[Choice, ...]
    """For an order, the steps in the right order; pages show ``shuffled``."""
    line: int
    was: tuple[str, ...] = ()
    """Former names."""

    @property
    def shuffled(self) -> tuple[tuple[str, Choice], ...]:
        """The steps of an order with their keys, which do not reveal their positions; never in the right order."""
        keys = shuffled_keys(self.name, [choice.text for choice in self.choices])
        return tuple((key, self.choices[number]) for key, number in keys)


_MAX_SHUFFLES = 100
"""More than enough: each shuffle of two different steps has an even chance. Equal steps have only one order."""


def shuffled_keys(prediction: str, steps: Sequence[str]) -> list[tuple[str, int]]:
    """For each step a key and its position in the right order, sorted by the keys; never in the right order.

    The steps are always sorted by their keys: an exception would show that sorting them gives the right order.
    """
    for salt in range(_MAX_SHUFFLES):
        texts = [f"{prediction}\n{step}" + f"\n{salt}" * bool(salt) for step in steps]
        digests = [hashlib.sha256(text.encode()).hexdigest()[:12] for text in texts]
        shuffled = sorted(zip(digests, range(len(steps)), strict=True))
        if [number for _, number in shuffled] != list(range(len(steps))):
            break
    return shuffled


Block = Prose | Cell | Quiz | Prediction


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
    """The lesson's text as learners may read it: without solutions, answers, and feedback."""
    source_path: Path
    digest: str
    """Changes whenever the text of the lesson's files changes, including ``checks.py``."""
    was: tuple[str, ...] = ()
    """Former slugs."""
    optional: frozenset[str] = frozenset()
    """The names of the cells, quizzes and predictions in sections that learners may skip."""
    publish_at: datetime | None = None
    """When it becomes visible to learners. Until then its status is ``draft``."""
    number: int = 0
    """Its position in the course, from 1."""
    total: int = 0
    """The number of lessons in the course."""
    cover: Path | None = None
    """A PNG picture in its language for links to it, if it has one."""

    @property
    def group(self) -> str:
        """As in Cell; the group of cells that set no machine."""
        return _choice_group(self)

    @property
    def key(self) -> str:
        """``course/slug``: identifies the lesson outside its own page."""
        return f"{self.course}/{self.slug}"

    def cell(self, name: str) -> Cell | None:
        """The cell with this name, or the one that was called so before."""
        return next((cell for cell in self.cells if name == cell.name or name in cell.was), None)

    @property
    def scheduled(self) -> bool:
        """Whether it is hidden only because its time has not come."""
        return self.status is LessonStatus.draft and self.publish_at is not None

    @property
    def source_digest(self) -> str:
        """Changes with ``source``, and unlike ``digest`` says nothing about answers: for everyone."""
        return hashlib.sha256(self.source.encode("utf-8", "surrogatepass")).hexdigest()[:24]

    @property
    def shown_cells(self) -> tuple[Cell, ...]:
        """The cells on the page."""
        return tuple(block for block in self.blocks if isinstance(block, Cell))

    @property
    def exercises(self) -> tuple[Cell, ...]:
        return tuple(cell for cell in self.cells if cell.exercise is not None)

    @property
    def quizzes(self) -> tuple[Quiz, ...]:
        return tuple(block for block in self.blocks if isinstance(block, Quiz))

    @property
    def predictions(self) -> tuple[Prediction, ...]:
        return tuple(block for block in self.blocks if isinstance(block, Prediction))


def _choice_group(offers: Cell | Lesson) -> str:
    topologies, kerases = " ".join(offers.topologies), " ".join(map(str, offers.kerases))
    return f"{offers.topology} of {topologies}, {offers.keras} of {kerases}"


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
    audience: str
    """For whom it is; may be empty, as may the next two."""
    prerequisites: tuple[str, ...]
    """What a learner needs: knowledge and equipment."""
    outcomes: tuple[str, ...]
    """What a learner will be able to do."""
    modules: tuple[Module, ...]
    cover: Path | None = None
    """A PNG picture for links to its pages, if it has one."""

    @property
    def lessons(self) -> tuple[str, ...]:
        """The slugs of all lessons, in order."""
        return tuple(slug for module in self.modules for slug in module.lessons)
