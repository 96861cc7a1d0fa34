"""Facts: what the ledger is made of, and what a run that ended proves. Pure.

Only what the server saw counts: which cell ran on which machine with which code, how the supervisor says that it ended,
and the supervisor's own notices. What a learner's program prints proves nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, order=True)
class Fact:
    """One thing that happened, and what it is worth. ``kind`` and ``subject`` are its name: it is awarded once."""

    kind: str
    subject: str
    xp: int = 0


@dataclass(frozen=True, slots=True)
class RunFacts:
    """A run that ended as its author meant it to: ``ok``, or with the error that its cell's tag announces."""

    lesson: str
    """``course/slug``."""
    cell: str
    code: str
    lesson_code: str | None
    """The cell's code as the lesson has it; None if the lesson has no such cell any more."""
    topology: str
    ok: bool
    """False for a cell that ends with an error on purpose."""
    began: datetime
    """In the learner's own time zone."""
    ended: datetime
    duration_ms: int
    notices: Collection[str] = ()
    """Codes of the notices of this run."""
    first: bool = False
    """Whether the learner had never run this cell before."""


def facts_of_run(run: RunFacts) -> list[Fact]:
    """Everything that the run proves, in no particular order."""
    raise NotImplementedError
