"""Which idle sessions a full node evicts, which queued session is next, and how long it will wait. Pure.

A session in which nothing runs ends after some time. While somebody who pressed Run waits for a place, the session
that has been idle the longest is evicted at once. It only has to have been idle for ``grace_s``: a learner who got a
place runs their code to its end and has that long to press the next cell, so two learners never evict each other
without progress. A session that has run nothing has nothing to lose: it goes first, and without a grace period.

Keeping a session restarts the time after which it ends by itself. It never holds a place against somebody who waits.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class IdleSession:
    """A session in which nothing runs and nothing is queued."""

    name: str
    idle_s: float
    """Seconds since its last run ended; if it never ran anything, since it became ready."""
    used: bool
    """Whether it ever ran anything."""


@dataclass(frozen=True, slots=True)
class QueuedSession:
    """A session in the queue; the order of arrival is the order in which they are given."""

    name: str
    owner: str
    has_run: bool
    """Somebody pressed Run and waits; the others were only asked for ahead of time."""


@dataclass(frozen=True, slots=True)
class BusySession:
    """A session with something to run."""

    running_s: float
    """Seconds since its current run started; 0 if it is still to start."""
    queued: int = 0
    """Runs behind that one."""


def choose_evictions(idle: Sequence[IdleSession], places_wanted: int, grace_s: float) -> list[str]:
    """The sessions that give up their place now.

    Args:
        idle: every session that could be evicted.
        places_wanted: how many people who pressed Run wait for a place that is not being freed already.
        grace_s: how long a session keeps its place after a run.
    """
    ready = [session for session in idle if _grace_left_s(session, grace_s) <= 0]
    ready.sort(key=lambda session: (session.used, -session.idle_s))
    return [session.name for session in ready[: max(0, places_wanted)]]


def _grace_left_s(session: IdleSession, grace_s: float) -> float:
    return max(0.0, grace_s - session.idle_s) if session.used else 0.0


def queue_order(waiters: Sequence[QueuedSession], held: Mapping[str, int]) -> list[str]:
    """The queue as it is served: sessions with a run first, then owners with the fewest sessions, then by arrival.

    Args:
        waiters: in order of arrival.
        held: how many places each owner has now.
    """
    taken = Counter(held)
    ranks: dict[str, tuple[bool, int]] = {}
    for waiter in sorted(waiters, key=lambda w: not w.has_run):
        ranks[waiter.name] = (not waiter.has_run, taken[waiter.owner])
        taken[waiter.owner] += 1
    return sorted((w.name for w in waiters), key=lambda name: ranks[name])


def estimate_wait_s(
    position: int,
    idle: Sequence[IdleSession],
    busy: Sequence[BusySession],
    recent_runs_s: Sequence[float],
    grace_s: float,
    free: int = 0,
) -> float | None:
    """About how many seconds until the session at ``position`` in the queue gets a place.

    Every place is expected to be free when its run is over, as far as recent runs tell, and its grace period has
    passed. The places go to the queue in turn; each new holder is expected to take as long as a typical run.

    Args:
        position: from 1, among those who pressed Run.
        idle: sessions that could be evicted.
        busy: sessions that have something to run.
        recent_runs_s: how long runs on this node took of late, in any order.
        grace_s: how long a session keeps its place after a run.
        free: places that are free, or are being freed.

    Returns:
        None where nothing is known: no run has ended yet and the place of a busy session is needed.
    """
    typical = median(recent_runs_s) if recent_runs_s else math.inf
    free_in = [0.0] * free + [_grace_left_s(session, grace_s) for session in idle]
    free_in += [_left_s(session, recent_runs_s, typical) + grace_s for session in busy]
    heapq.heapify(free_in)
    for _ in range(position - 1):
        if free_in:
            heapq.heapreplace(free_in, free_in[0] + typical + grace_s)
    return free_in[0] if free_in and math.isfinite(free_in[0]) else None


def _left_s(session: BusySession, recent_runs_s: Sequence[float], typical: float) -> float:
    """How long a session still has to run. A run that is longer than all recent ones is about half over."""
    if not recent_runs_s:
        return math.inf
    longer = [run_s for run_s in recent_runs_s if run_s > session.running_s]
    current = median(longer) - session.running_s if longer else session.running_s
    return current + (session.queued * typical if session.queued else 0.0)
