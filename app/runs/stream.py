"""A run as a live stream: what SQL holds, as it comes in. So what was shown is stored, and nothing is shown twice."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import asdict

from app.bus import Bus
from app.db import Database
from app.errors import TooMany
from app.runs import log
from app.runs.models import Run
from app.runs.place import Place, look_up
from app.runs.pump import Pump
from app.runs.service import runs_ahead
from app.web.origin import origin
from app.web.sse import Frame, Seats
from runners.client import RunnerClient

MOST_STREAMS = 12
"""Of one learner in one web process; a page opens two at most."""
VISITORS_STREAMS = 4
"""So many for each visitor who may run code from one network address."""
_LOOK_EVERY_S = 1.0
"""How far a run that waits has come is nobody's news: it is looked up."""
_SAFETY_S = 15.0
"""Whoever stores events wakes us. Should that ever fail, they are seen after so long."""
_PATIENCE_S = 0.15
"""A run that answers sooner than this never shows that it had to wait."""


class RunStreams:
    """Streams of runs for browsers."""

    def __init__(
        self, db: Database, runner: RunnerClient, bus: Bus, pump: Pump, *, visitors_per_address: int = 0
    ) -> None:
        self._db = db
        self._runner = runner
        self._bus = bus
        self._pump = pump
        self._of_learner = Seats(MOST_STREAMS)
        self._of_address = Seats(VISITORS_STREAMS * visitors_per_address)

    def open(self, run: Run, after: int, visitors_address: str | None = None) -> AsyncIterator[list[Frame]]:
        """The same as ``frames``, while the learner, or a visitor's network, has not too many of them.

        Raises:
            TooMany: then the page asks again after a while, from where it was.
        """
        stream = self.seated(run.visitor_id, visitors_address, self.frames(run.id, after))
        self._pump.watch(run.id, origin(visitors_address))
        return stream

    def seated(
        self, learner: str, visitors_address: str | None, frames: AsyncIterator[list[Frame]]
    ) -> AsyncIterator[list[Frame]]:
        """``frames`` as one of the learner's streams. Raises TooMany."""
        place = origin(visitors_address)
        if self._of_learner.full(learner) or self._of_address.full(place):
            raise TooMany
        return self._seated(learner, place, frames)

    async def _seated(
        self, learner: str, place: str | None, frames: AsyncIterator[list[Frame]]
    ) -> AsyncIterator[list[Frame]]:
        with self._of_learner.taken(learner) as mine, self._of_address.taken(place) as ours:
            if mine and ours:
                async for batch in frames:
                    yield batch

    async def frames(self, run_id: str, after: int) -> AsyncIterator[list[Frame]]:
        """Yield the events behind number ``after`` until ``finished``, and in between where the run stands."""
        self._pump.watch(run_id)
        told: Place | None = None
        wait_s = _PATIENCE_S
        patient = True
        ended = False
        with self._bus.listen(run_id) as bell:
            while not self._bus.closed:
                lines = await log.read(self._db, run_id, after)
                if lines:
                    after, wait_s = lines[-1].seq, _SAFETY_S
                    yield [Frame(line.kind, line.payload, line.seq) for line in lines]
                    if lines[-1].kind == "finished":
                        return
                    if len(lines) == log.MOST_PER_READ:
                        continue
                elif ended:
                    return
                elif not patient:
                    at = await self._place(run_id)
                    if at is None:
                        return
                    if at.state == "finished":
                        ended = True  # its last events may have been stored since we looked
                        continue
                    if at != told:
                        told = at
                        yield [Frame("state", json.dumps(asdict(at)))]
                    wait_s = _SAFETY_S if at.state == "running" else _LOOK_EVERY_S
                await bell.wait(wait_s)
                patient = False

    async def _place(self, run_id: str) -> Place | None:
        async with self._db.session() as session:
            run = await session.get(Run, run_id)
            if run is None:
                return None
            ahead = await runs_ahead(session, run)
        if self._pump.cut_off(run_id) and not run.finished:
            return Place("unstored" if self._db.storage.failing else "reconnecting", None, ahead)
        return await look_up(self._runner, run, ahead)
