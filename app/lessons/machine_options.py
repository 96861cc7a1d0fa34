"""Which machine a cell starts with, and which others a learner may pick. Pure.

The front matter and each cell may say ``topology`` and ``topologies``, ``keras`` and ``kerases``. What a cell says
takes the place of what the lesson says: one that names its machine has that one and no other, unless it lists others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from app.lessons.directives import LessonError
from app.lessons.yaml_with_lines import YamlEntry

T = TypeVar("T", str, int)


class MachineFields(Protocol):
    """What a front matter or a cell says of its machine; None where it says nothing."""

    @property
    def topology(self) -> str | None: ...
    @property
    def topologies(self) -> tuple[str, ...] | None: ...
    @property
    def keras(self) -> int | None: ...
    @property
    def kerases(self) -> tuple[int, ...] | None: ...


@dataclass(frozen=True, slots=True)
class MachineOptions:
    """The machine to start with, and all that may be picked, in the author's order."""

    topology: str
    topologies: tuple[str, ...]
    keras: int
    kerases: tuple[int, ...]


DEFAULT_MACHINE_OPTIONS = MachineOptions("gpu:4", ("gpu:4",), 3, (3,))
"""What a lesson has that says nothing."""


def resolve_machine_options(said: MachineFields, otherwise: MachineOptions = DEFAULT_MACHINE_OPTIONS) -> MachineOptions:
    """What ``said`` amounts to, where ``otherwise`` is what holds without it."""
    topology, topologies = _resolve_option(said.topology, said.topologies, otherwise.topology, otherwise.topologies)
    keras, kerases = _resolve_option(said.keras, said.kerases, otherwise.keras, otherwise.kerases)
    return MachineOptions(topology, topologies, keras, kerases)


def _resolve_option(
    one: T | None, several: tuple[T, ...] | None, usual: T, possible: tuple[T, ...]
) -> tuple[T, tuple[T, ...]]:
    if several:
        return one or (usual if usual in several else several[0]), several
    return (one, (one,)) if one else (usual, possible)


def machine_option_errors(said: MachineFields, entries: Mapping[str, YamlEntry]) -> Iterator[LessonError]:
    """Yield the mistakes of lists that leave out the machine to start with; ``entries`` tell their lines."""
    for key, listing, one, several in (
        ("topology", "topologies", said.topology, said.topologies),
        ("keras", "kerases", said.keras, said.kerases),
    ):
        if one and several and one not in several:
            yield LessonError(
                entries[listing].line,
                f"'{listing}' leaves out {one}, which '{key}' starts with; add it, or change '{key}'",
            )
