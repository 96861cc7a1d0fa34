"""Facts: what the ledger is made of, and what a run that ended proves. Pure.

Only what the server saw counts: which cell ran on which machine with which code, how the supervisor says that it ended,
and the supervisor's own notices. What a learner's program prints proves nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime

from app.progress import code
from runners.protocol import Topology

CELL_XP = 10
TOPOLOGY_XP = 5
STRATEGY_XP = 15
LONG_MS = 120_000
"""What makes a training a long one."""
_NIGHT_BEGINS, _NIGHT_ENDS = 22, 5
_STARTED_ANEW = frozenset({"cluster-restarted", "member-restarted"})
"""Notices of the supervisor itself; no program can make it say them (``runners.reports`` has those it can)."""


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
    keras: int
    ok: bool
    """False for a cell that ends with an error on purpose."""
    ended: datetime
    duration_ms: int
    notices: Collection[str] = ()
    """Codes of the notices of this run."""
    first: bool = False
    """Whether the learner had never run this cell before."""


def facts_of_run(run: RunFacts, here: datetime) -> list[Fact]:
    """Everything that the run proves, in no particular order. ``here``: its end by the learner's own clock."""
    facts = [Fact("cell", f"{run.lesson}#{run.cell}", CELL_XP), day(here), Fact("hour", f"{here.hour:02}")]
    if run.ok:
        facts += _of_machine(run)
        facts += _of_code(run)
        facts += _of_endurance(run, here)
    return facts


def day(here: datetime) -> Fact:
    """That the learner was active on this day of their own."""
    return Fact("day", here.date().isoformat())


def wants_notices(topology: str) -> bool:
    """Whether the notices of a run on this machine can prove anything."""
    return Topology.parse(topology).cluster


def wants_first(run_code: str, lesson_code: str | None, topology: str) -> bool:
    """Whether it matters that a run was the first of its cell."""
    return (
        Topology.parse(topology).replicas >= 2
        and lesson_code is not None
        and code.scales_loss(run_code)
        and not code.same(run_code, lesson_code)
    )


def _of_machine(run: RunFacts) -> Iterator[Fact]:
    topology = Topology.parse(run.topology)
    yield Fact("topology", run.topology, TOPOLOGY_XP)
    yield Fact("machine", topology.kind)
    yield Fact("keras", str(run.keras))
    if topology.cluster:
        yield Fact("cluster", str(len(topology.tasks)))
        yield Fact("workers", str(topology.workers))
    if _STARTED_ANEW & set(run.notices):
        yield Fact("survived", f"{run.lesson}#{run.cell}")


def _of_code(run: RunFacts) -> Iterator[Fact]:
    if run.lesson_code is not None and not code.same(run.code, run.lesson_code):
        yield Fact("own", f"{run.lesson}#{run.cell}")
    made = code.strategies(run.code)
    for name in made:
        yield Fact("strategy", name, STRATEGY_XP)
    if made:
        yield Fact("replicas", str(Topology.parse(run.topology).replicas))
    if run.first and wants_first(run.code, run.lesson_code, run.topology):
        yield Fact("scaled", f"{run.lesson}#{run.cell}")


def _of_endurance(run: RunFacts, here: datetime) -> Iterator[Fact]:
    if run.duration_ms >= LONG_MS:
        yield Fact("long", f"{run.lesson}#{run.cell}")
        if here.hour >= _NIGHT_BEGINS or here.hour < _NIGHT_ENDS:
            yield Fact("night", here.date().isoformat())
