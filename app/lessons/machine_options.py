"""The default machine of a cell, and the others that a learner may choose. Pure.

The front matter and each cell may set ``topology`` and ``topologies``, ``keras`` and ``kerases``. A cell's values
replace the lesson's: a cell that sets its machine offers only that one, unless it lists others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from app.lessons.directives import LessonError
from app.lessons.yaml_with_lines import YamlEntry

T = TypeVar("T", str, int)


class MachineFields(Protocol):
    """The machine fields of a front matter or a cell; None if not set."""

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
    """The default machine, and all choices in the author's order."""

    topology: str
    topologies: tuple[str, ...]
    keras: int
    kerases: tuple[int, ...]


DEFAULT_MACHINE_OPTIONS = MachineOptions("gpu:4", ("gpu:4",), 3, (3,))
"""The options of a lesson that sets none."""


def resolve_machine_options(said: MachineFields, otherwise: MachineOptions = DEFAULT_MACHINE_OPTIONS) -> MachineOptions:
    """The options set by ``said``, with defaults from ``otherwise``."""
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
    """Yield errors for lists that do not include the default machine; ``entries`` have the line numbers."""
    for key, listing, one, several in (
        ("topology", "topologies", said.topology, said.topologies),
        ("keras", "kerases", said.keras, said.kerases),
    ):
        if one and several and one not in several:
            yield LessonError(
                entries[listing].line,
                f"'{listing}' does not include {one}, the value of '{key}'; add it, or change '{key}'",
            )
