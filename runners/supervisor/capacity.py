"""Computes how many sessions a node holds at once, from its memory and processes, unless its operator sets it.

    seats = (memory - 1280 MiB) / seat, but at most (processes - 2048) / processes of one session

Memory is the lowest limit of a cgroup around the runner (Compose's ``mem_limit`` sets one). Without such a limit, it is
three quarters of the machine's memory, because the web application and the database run there, too. The constant is for
the supervisor, a zygote for each version of Keras (260 MiB each), warm kernels and data sets. A seat is a twelfth of a
session's memory limit, 256 MiB by default, and at least 192 MiB: measured, an idle session takes 16 to 21 MiB, and 174
MiB after a fit on 4 replicas. Seats are overcommitted on purpose: few sessions need much memory at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass

from runners.config.settings import RunnerSettings
from runners.sandbox.machine_limits import AvailableResources
from runners.wire.protocol import Safeguard

MIN_SESSIONS, MAX_SESSIONS = 2, 200
"""Bounds of the automatic number: fewer are useless for a class, and more would wait for the CPU anyway."""
RESERVED_MB = 1280
"""MiB reserved for the supervisor, two zygotes, warm kernels and data sets."""
MIN_SESSION_MB = 192
SESSIONS_PER_MEMORY_LIMIT = 12
RESERVED_PROCESSES = 2048
"""Processes and threads reserved for everything but sessions."""


@dataclass(frozen=True, slots=True)
class SessionCapacity:
    """The number of sessions at once, and where it comes from."""

    count: int
    why: str
    too_many: str = ""
    """The consequence, if the operator has set more sessions than the process limit allows."""

    def safeguard(self, per_learner: int) -> Safeguard:
        """The row for ``lockstep doctor``."""
        detail = f"{self.count:,} at once, {per_learner} for a learner; {self.why}"
        return Safeguard(kind="limit", name="sessions", in_force=not self.too_many, detail=detail, means=self.too_many)


def session_capacity(settings: RunnerSettings, room: AvailableResources) -> SessionCapacity:
    """Return the number that is set, or else the number that there is room for. Pure."""
    most = (
        None if room.processes is None else max(1, (room.processes - RESERVED_PROCESSES) // settings.limits.processes)
    )
    if settings.max_sessions:
        return SessionCapacity(settings.max_sessions, "LOCKSTEP_MAX_SESSIONS", _too_many(settings, room, most))
    seat_mb = max(MIN_SESSION_MB, settings.limits.memory_mb // SESSIONS_PER_MEMORY_LIMIT)
    count = min(MAX_SESSIONS, max(MIN_SESSIONS, (room.memory_mb - RESERVED_MB) // seat_mb))
    whose = "the limit of its cgroup" if room.memory_is_limited else "three quarters of the machine's memory"
    why = f"as many as {room.memory_mb:,} MiB allow, {whose}"
    if most is not None and most < count:
        return SessionCapacity(most, f"as many as {room.processes:,} processes allow")
    return SessionCapacity(count, why)


def _too_many(settings: RunnerSettings, room: AvailableResources, most: int | None) -> str:
    if most is None or settings.max_sessions <= most:
        return ""
    needed = settings.max_sessions * settings.limits.processes + RESERVED_PROCESSES
    return (
        f"The runner may have {room.processes:,} processes, and this many sessions can need {needed:,}: one session "
        f"may then take those of another. Raise that limit (LOCKSTEP_RUNNER_PIDS={needed} under Compose), or set "
        f"LOCKSTEP_MAX_SESSIONS to {most} or less."
    )
