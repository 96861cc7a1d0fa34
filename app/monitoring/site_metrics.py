"""The state of the site's parts, asked for when Prometheus reads it: the runner, the database and the outbox.

A part that does not respond leaves its figures out, and its ``_up`` is 0. So a graph has a gap there, not a zero.
"""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from sqlalchemy.exc import SQLAlchemyError

from app.db import Database, now
from app.mail import outbox
from app.mail.models import EmailState
from app.version import lockstep_version
from runners.wire.client import RunnerClient, RunnerError
from runners.wire.protocol import Health

T = TypeVar("T")
_TIMEOUT_S = 3.0
"""How long a part may take to respond. Prometheus gives up after 10 s."""


@dataclass(frozen=True, slots=True)
class StorageState:
    """What the database knows."""

    size_bytes: int
    emails: outbox.OutboxState
    writable: bool = True
    """False from the first write that fails, for instance on a full disk, to the next that succeeds."""


@dataclass(frozen=True, slots=True)
class SiteState:
    """What the parts responded; None for one that did not."""

    runner: Health | None = None
    storage: StorageState | None = None


async def look_at_site(db: Database, runner: RunnerClient) -> SiteState:
    """Ask every part."""
    health, storage = await asyncio.gather(_within_time(runner.health()), _within_time(_look_at_storage(db)))
    return SiteState(health, storage)


async def _within_time(asked: Awaitable[T]) -> T | None:
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            return await asked
    except (RunnerError, SQLAlchemyError, OSError):  # a TimeoutError is an OSError
        return None


async def _look_at_storage(db: Database) -> StorageState:
    problem = await db.health.problem()
    return StorageState(await db.size_bytes(), await outbox.read_state(db), writable=problem is None)


def site_metrics(site: SiteState, at: datetime | None = None) -> Iterator[Metric]:
    """All metrics of the parts, those without a figure too. Pure."""
    version = platform.python_version()
    labels = {"version": lockstep_version(), "python": version}
    yield _gauge("lockstep_build_info", "1. The labels have the versions of Lockstep and of Python.", 1, labels)
    yield from _runner_metrics(site.runner)
    yield from _storage_metrics(site.storage, at or now())


def _runner_metrics(health: Health | None) -> Iterator[Metric]:
    ready = health is not None and health.status == "ready"
    yield _gauge("lockstep_runner_up", "Whether the runner responds and can start sessions.", int(ready))

    def gauge(name: str, meaning: str, read: Callable[[Health], float]) -> Metric:
        return _gauge(f"lockstep_{name}", meaning, None if health is None else read(health))

    def counter(name: str, meaning: str, read: Callable[[Health], float]) -> Metric:
        family = CounterMetricFamily(f"lockstep_{name}", f"{meaning} Counted since the runner started.")
        if health is not None:
            family.add_metric([], read(health))
        return family

    yield gauge("runner_runs_code", "Whether it runs code: 0 if isolation is missing.", lambda h: not h.refuses)
    yield gauge("sessions", "Sessions that hold a place.", lambda h: h.sessions)
    yield gauge("sessions_limit", "How many sessions may hold a place.", lambda h: h.max_sessions)
    yield gauge("queued_sessions", "Sessions that wait for a place.", lambda h: h.queued)
    yield gauge("queue_wait_seconds", "How long the run that waits longest has waited.", lambda h: h.longest_wait_s)
    yield gauge("warm_kernels", "Kernels that are ready for the next sessions.", lambda h: h.warm_kernels)
    yield counter("memory_kills", "Runs that were ended for the memory they took.", lambda h: h.memory_kills)
    yield counter("dropped_messages", "Invalid messages from kernels.", lambda h: h.dropped_messages)


def _storage_metrics(storage: StorageState | None, at: datetime) -> Iterator[Metric]:
    up = storage is not None and storage.writable
    yield _gauge("lockstep_database_up", "Whether the database responds and stores what is written.", int(up))
    size = None if storage is None else storage.size_bytes
    yield _gauge("lockstep_database_size_bytes", "How much disk space the database takes.", size)
    emails = GaugeMetricFamily("lockstep_outbox_emails", "Emails in the outbox, by state.", labels=["state"])
    if storage is not None:
        for state in EmailState:
            emails.add_metric([state.value], storage.emails.count.get(state, 0))
    yield emails
    oldest = None
    if storage is not None:
        oldest = max(0.0, (at - (storage.emails.oldest_waiting or at)) / timedelta(seconds=1))
    yield _gauge("lockstep_outbox_oldest_seconds", "How long the oldest email has waited; 0 if none waits.", oldest)


def _gauge(name: str, meaning: str, value: float | None, labels: dict[str, str] | None = None) -> GaugeMetricFamily:
    gauge = GaugeMetricFamily(name, meaning, labels=list(labels or ()))
    if value is not None:
        gauge.add_metric(list((labels or {}).values()), value)
    return gauge
