"""Learning events: the entries of the ledger, and which of them follow from a completed run. Pure.

The server knows which cell was run on which machine with which code, and the supervisor's own notices. That the code
ran to its end is the kernel's claim: the learner's code runs in the same process and could forge it. So what follows
from a run is worth little; only a judged exercise, whose judge has never run learner code, is worth more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime

from app.progress import code_analysis
from runners.wire.protocol import Topology

CELL_XP = 2
PREDICTION_XP = 2
QUIZ_XP = 2
"""Working through a lesson is worth little: most XP comes from passed checks."""
TOPOLOGY_XP = 2
STRATEGY_XP = 2
LONG_RUN_MS = 120_000
"""Duration from which a run counts as long."""
_NIGHT_START_HOUR, _NIGHT_END_HOUR = 22, 5
_RESTART_NOTICES = frozenset({"cluster-restarted", "member-restarted"})
"""Notices of the supervisor, which no program can fake (see ``runners.wire.reports`` for those it can)."""


@dataclass(frozen=True, slots=True, order=True)
class LearningEvent:
    """An event and its XP. ``kind`` and ``subject`` identify it: each event is awarded once per learner."""

    kind: str
    subject: str
    xp: int = 0


@dataclass(frozen=True, slots=True)
class CompletedRun:
    """A run that ended as intended: ``ok``, or with the error that its cell's tag announces."""

    lesson: str
    """``course/slug``."""
    cell: str
    code: str
    lesson_code: str | None
    """The cell's code in the lesson; None if the lesson no longer has the cell."""
    topology: str
    keras: int
    ok: bool
    """False for a cell that is meant to end with an error."""
    ended: datetime
    duration_ms: int
    notices: Collection[str] = ()
    """Codes of the run's notices."""
    first: bool = False
    """Whether this was the learner's first run of the cell."""


def events_of_run(run: CompletedRun, here: datetime, *, is_local: bool = True) -> list[LearningEvent]:
    """All events that the run proves, in no particular order.

    Args:
        run: the run.
        here: its end in the learner's time zone.
        is_local: whether that zone is known. Otherwise the hour proves nothing.
    """
    facts = [LearningEvent("cell", f"{run.lesson}#{run.cell}", CELL_XP), active_day(here)]
    if is_local:
        facts.append(LearningEvent("hour", f"{here.hour:02}"))
    if run.ok:
        facts += _machine_events(run)
        facts += _code_events(run)
        facts += (event for event in _duration_events(run, here) if is_local or event.kind != "night")
    return facts


def active_day(here: datetime) -> LearningEvent:
    """The event of an active day in the learner's time zone."""
    return LearningEvent("day", here.date().isoformat())


def needs_notices(topology: str) -> bool:
    """Whether notices of a run on this machine can prove anything."""
    return Topology.parse(topology).cluster


def needs_first_run(run_code: str, lesson_code: str | None, topology: str) -> bool:
    """Whether it matters that a run was the first of its cell."""
    return (
        Topology.parse(topology).replicas >= 2
        and lesson_code is not None
        and code_analysis.scales_loss(run_code)
        and not code_analysis.is_unchanged(run_code, lesson_code)
    )


def _machine_events(run: CompletedRun) -> Iterator[LearningEvent]:
    topology = Topology.parse(run.topology)
    yield LearningEvent("topology", run.topology, TOPOLOGY_XP)
    yield LearningEvent("machine", topology.kind)
    yield LearningEvent("keras", str(run.keras))
    if topology.cluster:
        yield LearningEvent("cluster", str(len(topology.tasks)))
        yield LearningEvent("workers", str(topology.workers))
    if _RESTART_NOTICES & set(run.notices):
        yield LearningEvent("survived", f"{run.lesson}#{run.cell}")


def _code_events(run: CompletedRun) -> Iterator[LearningEvent]:
    if run.lesson_code is not None and not code_analysis.is_unchanged(run.code, run.lesson_code):
        yield LearningEvent("own", f"{run.lesson}#{run.cell}")
    made = code_analysis.used_strategies(run.code)
    for name in made:
        yield LearningEvent("strategy", name, STRATEGY_XP)
    if made:
        yield LearningEvent("replicas", str(Topology.parse(run.topology).replicas))
    if run.first and needs_first_run(run.code, run.lesson_code, run.topology):
        yield LearningEvent("scaled", f"{run.lesson}#{run.cell}")


def _duration_events(run: CompletedRun, here: datetime) -> Iterator[LearningEvent]:
    if run.duration_ms >= LONG_RUN_MS:
        yield LearningEvent("long", f"{run.lesson}#{run.cell}")
        if here.hour >= _NIGHT_START_HOUR or here.hour < _NIGHT_END_HOUR:
            yield LearningEvent("night", here.date().isoformat())
