"""Live streams of runs, read from SQL: so everything shown is stored, and nothing is shown twice."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from dataclasses import asdict

from app.bus import Bus
from app.db import Database
from app.errors import TooManyRequests
from app.metrics import EVENT_LAG_SECONDS
from app.runs import event_log
from app.runs.follower_pool import FollowerPool
from app.runs.models import Run
from app.runs.queue_position import QueuePosition, look_up_position
from app.runs.service import count_runs_ahead
from app.web.client_network import client_network
from app.web.sse import ConnectionLimiter, ServerSentEvent
from runners.wire.client import RunnerClient

MAX_STREAMS_PER_LEARNER = 12
"""Per learner and web process; a page opens at most two."""
STREAMS_PER_VISITOR = 4
"""Per visitor who may run code at one network address."""
_POSITION_POLL_S = 1.0
"""Queue positions are not published on the bus, so they are polled."""
_FALLBACK_POLL_S = 15.0
"""Delay until events stored by another web process are seen."""
_QUEUE_DISPLAY_DELAY_S = 0.15
"""A run that starts sooner than this never shows that it waited."""


class RunStreams:
    def __init__(
        self, db: Database, runner: RunnerClient, bus: Bus, followers: FollowerPool, *, visitors_per_address: int = 0
    ) -> None:
        self._db = db
        self._runner = runner
        self._bus = bus
        self._followers = followers
        self._of_learner = ConnectionLimiter(MAX_STREAMS_PER_LEARNER)
        self._of_address = ConnectionLimiter(STREAMS_PER_VISITOR * visitors_per_address)

    def open(self, run: Run, after: int, visitors_address: str | None = None) -> AsyncIterator[list[ServerSentEvent]]:
        """``frames``, limited per learner and per visitors' network address.

        Raises:
            TooManyRequests: the page retries later, from where it was.
        """
        stream = self.seated(run.learner_id, visitors_address, self.frames(run.id, after))
        self._followers.watch(run.id, client_network(visitors_address))
        return stream

    def seated(
        self, learner: str, visitors_address: str | None, frames: AsyncIterator[list[ServerSentEvent]]
    ) -> AsyncIterator[list[ServerSentEvent]]:
        """Count ``frames`` as one of the learner's streams. Raises TooManyRequests."""
        network = client_network(visitors_address)
        if self._of_learner.full(learner) or self._of_address.full(network):
            raise TooManyRequests
        return self._seated(learner, network, frames)

    async def _seated(
        self, learner: str, network: str | None, frames: AsyncIterator[list[ServerSentEvent]]
    ) -> AsyncIterator[list[ServerSentEvent]]:
        with self._of_learner.taken(learner) as mine, self._of_address.taken(network) as ours:
            if mine and ours:
                async for batch in frames:
                    yield batch

    async def frames(self, run_id: str, after: int) -> AsyncIterator[list[ServerSentEvent]]:
        """Yield the events after number ``after`` until ``finished`` and, while the run waits, its queue position."""
        self._followers.watch(run_id)
        told: QueuePosition | None = None
        wait_s = _QUEUE_DISPLAY_DELAY_S
        patient = True
        ended = False
        since: float | None = None
        with self._bus.subscribe(event_log.run_topic(run_id)) as events:
            while not self._bus.closed:
                lines = await event_log.read_stored_events(self._db, run_id, after)
                if lines:
                    after, wait_s = lines[-1].seq, _FALLBACK_POLL_S
                    if since is not None:
                        EVENT_LAG_SECONDS.observe(time.monotonic() - since)
                        since = None
                    yield [ServerSentEvent(line.kind, line.payload, line.seq) for line in lines]
                    if lines[-1].kind == "finished":
                        return
                    if len(lines) == event_log.READ_BATCH_SIZE:
                        continue
                elif ended:
                    return
                elif not patient:
                    at = await self._place(run_id)
                    if at is None:
                        return
                    if at.state == "finished":
                        ended = True  # its last events may have been stored since we read
                        continue
                    if at != told:
                        told = at
                        yield [ServerSentEvent("state", json.dumps(asdict(at)))]
                    wait_s = _FALLBACK_POLL_S if at.state == "running" else _POSITION_POLL_S
                looked_at = time.monotonic()
                notified = await events.wait(wait_s)
                # Events that came without notice may have been stored just after the last look.
                since = events.notified_at if notified else looked_at
                patient = False

    async def _place(self, run_id: str) -> QueuePosition | None:
        async with self._db.session() as session:
            run = await session.get(Run, run_id)
            if run is None:
                return None
            ahead = await count_runs_ahead(session, run)
        if self._followers.cut_off(run_id) and not run.finished:
            return QueuePosition("unstored" if self._db.health.failing else "reconnecting", None, ahead)
        return await look_up_position(self._runner, run, ahead)
