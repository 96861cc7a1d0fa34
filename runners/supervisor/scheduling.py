"""Decides which idle sessions a full node evicts and which queued session is next, and estimates waits. Pure.

An idle session ends after some time. While somebody who pressed Run waits for a seat, the session that has been idle
longest is evicted at once, provided that it has been idle for ``grace_s``. A learner with a seat can therefore finish a
run and has that long to start the next cell, so two learners never evict each other without progress. A session that
has not run anything has nothing to lose: it goes first, without a grace period.

Keeping a session only restarts its idle time. It never protects the session from eviction.
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
    """Seconds since its last run ended, or since it became ready if it has not run anything."""
    used: bool
    """Whether it has run anything."""


@dataclass(frozen=True, slots=True)
class QueuedSession:
    """A session in the queue. Sequences of these are in order of arrival."""

    name: str
    owner: str
    has_run: bool
    """Whether somebody pressed Run and waits; otherwise it was only requested ahead of time."""


@dataclass(frozen=True, slots=True)
class BusySession:
    """A session with something to run."""

    running_s: float
    """Seconds since its current run started; 0 if it has not started yet."""
    queued: int = 0
    """The number of runs queued behind that one."""


def choose_evictions(idle: Sequence[IdleSession], places_wanted: int, grace_s: float) -> list[str]:
    """Choose the sessions to evict now.

    Args:
        idle: every session that could be evicted.
        places_wanted: how many people who pressed Run wait for a seat, minus the seats that are already being freed.
        grace_s: how long a session keeps its seat after a run.
    """
    ready = [session for session in idle if _grace_left_s(session, grace_s) <= 0]
    ready.sort(key=lambda session: (session.used, -session.idle_s))
    return [session.name for session in ready[: max(0, places_wanted)]]


def _grace_left_s(session: IdleSession, grace_s: float) -> float:
    return max(0.0, grace_s - session.idle_s) if session.used else 0.0


def queue_order(waiters: Sequence[QueuedSession], held: Mapping[str, int]) -> list[str]:
    """Order the queue: sessions with a run first, then owners with the fewest sessions, then by arrival.

    Args:
        waiters: in order of arrival.
        held: how many seats each owner has now.
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
    """Estimate the seconds until the session at ``position`` in the queue gets a seat.

    A seat is expected to become free when its run, judged by recent runs, and its grace period are over. Seats go to
    the queue in turn; each new holder is expected to take as long as a typical run.

    Args:
        position: counted from 1, among sessions with a run.
        idle: sessions that could be evicted.
        busy: sessions that have something to run.
        recent_runs_s: the durations of recent runs on this node, in any order.
        grace_s: how long a session keeps its seat after a run.
        free: the number of seats that are free or being freed.

    Returns:
        The estimate; None if no run has ended yet and the seat of a busy session is needed.
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
    """Estimate how long a session still runs. A run that is longer than all recent ones counts as half over."""
    if not recent_runs_s:
        return math.inf
    longer = [run_s for run_s in recent_runs_s if run_s > session.running_s]
    current = median(longer) - session.running_s if longer else session.running_s
    return current + (session.queued * typical if session.queued else 0.0)
