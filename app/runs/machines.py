"""The machines on which a lesson's sessions can run, and the learner's choice among them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Self

from app.lessons.model import Cell, Lesson
from app.runs.errors import MachineUnavailable
from runners.wire.protocol import KerasVersion


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine for sessions: a topology and a version of Keras."""

    topology: str
    keras: KerasVersion

    @classmethod
    def of(cls, topology: str, keras: int) -> Self:
        """A machine whose Keras version comes from a lesson or the database, where it is always 2 or 3."""
        return cls(topology, 2 if keras == 2 else 3)

    def __str__(self) -> str:
        return f"{self.topology} (Keras {self.keras})"


def lesson_machines(lesson: Lesson) -> list[Machine]:
    """All machines that a lesson's cells can run on, the lesson's default first.

    A page without cells, as the playground is, offers those of the page to the cells that learners add.
    """
    own = Machine.of(lesson.topology, lesson.keras)
    offering = lesson.cells or (lesson,)
    return list(dict.fromkeys([own, *(machine for each in offering for machine in cell_machines(each))]))


def cell_machines(cell: Cell | Lesson) -> list[Machine]:
    """All machines that a learner can run a cell on, the default first."""
    own = Machine.of(cell.topology, cell.keras)
    return list(dict.fromkeys([own, *(Machine.of(*pair) for pair in product(cell.topologies, cell.kerases))]))


def choose_machine(possible: list[Machine], topology: str | None, keras: int | None) -> Machine:
    """The requested machine; missing values are those of ``possible[0]``. Raises MachineUnavailable."""
    own = possible[0]
    asked = (topology or own.topology, own.keras if keras is None else keras)
    for machine in possible:
        if (machine.topology, machine.keras) == asked:
            return machine
    raise MachineUnavailable(asked=f"{asked[0][:40]} (Keras {asked[1]})", possible=", ".join(map(str, possible)))
