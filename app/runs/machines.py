"""The machines that a lesson's sessions can be, and a learner's choice among them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Self

from app.lessons.model import Cell, Lesson
from app.runs.errors import MachineUnavailable
from runners.wire.protocol import KerasVersion


@dataclass(frozen=True, slots=True)
class Machine:
    """What a session is: one learner's kernel of one lesson on one topology."""

    topology: str
    keras: KerasVersion

    @classmethod
    def of(cls, topology: str, keras: int) -> Self:
        """A machine whose Keras comes from a lesson or a database, which have no other than these."""
        return cls(topology, 2 if keras == 2 else 3)

    def __str__(self) -> str:
        return f"{self.topology} (Keras {self.keras})"


def lesson_machines(lesson: Lesson) -> list[Machine]:
    """Every machine that a lesson's cells may run on, the lesson's own first."""
    own = Machine.of(lesson.topology, lesson.keras)
    return list(dict.fromkeys([own, *(machine for cell in lesson.cells for machine in cell_machines(cell))]))


def cell_machines(cell: Cell) -> list[Machine]:
    """Every machine that a learner may run a cell on, the one it starts with first."""
    own = Machine.of(cell.topology, cell.keras)
    return list(dict.fromkeys([own, *(Machine.of(*pair) for pair in product(cell.topologies, cell.kerases))]))


def choose_machine(possible: list[Machine], topology: str | None, keras: int | None) -> Machine:
    """The machine asked for; what is not said is as in the first of ``possible``. Raises MachineUnavailable."""
    own = possible[0]
    asked = (topology or own.topology, own.keras if keras is None else keras)
    for machine in possible:
        if (machine.topology, machine.keras) == asked:
            return machine
    raise MachineUnavailable(asked=f"{asked[0][:40]} (Keras {asked[1]})", possible=_join_names(possible))


def _join_names(possible: Iterable[Machine]) -> str:
    return ", ".join(map(str, possible))
