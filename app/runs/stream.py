"""A run as a live stream: what SQL holds, as it comes in. So what was shown is stored, and nothing is shown twice."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import asdict

from app.bus import Bus
from app.db import Database
from app.runs import log
from app.runs.models import Run
from app.runs.place import Place, look_up
from app.runs.pump import Pump
from app.runs.service import runs_ahead
from app.web.sse import Frame
from runners.client import RunnerClient

_POLL_S = 1.0
"""Another process may have stored events without waking this one."""
_PATIENCE_S = 0.15
"""A run that answers sooner than this never shows that it had to wait."""


class RunStreams:
    """Streams of runs for browsers."""

    def __init__(self, db: Database, runner: RunnerClient, bus: Bus, pump: Pump) -> None:
        self._db = db
        self._runner = runner
        self._bus = bus
        self._pump = pump

    async def frames(self, run_id: str, after: int) -> AsyncIterator[list[Frame]]:
        """Yield the events behind number ``after`` until ``finished``, and in between where the run stands."""
        self._pump.watch(run_id)
        told: Place | None = None
        wait_s = _PATIENCE_S
        ended = False
        with self._bus.listen(run_id) as bell:
            while not self._bus.closed:
                lines = await log.read(self._db, run_id, after)
                if lines:
                    after = lines[-1].seq
                    yield [Frame(line.kind, line.payload, line.seq) for line in lines]
                    if lines[-1].kind == "finished":
                        return
                    if len(lines) == log.MOST_PER_READ:
                        continue
                elif ended:
                    return
                elif wait_s == _POLL_S:
                    at = await self._place(run_id)
                    if at is None:
                        return
                    if at.state == "finished":
                        ended = True  # its last events may have been stored since we looked
                        continue
                    if at != told:
                        told = at
                        yield [Frame("state", json.dumps(asdict(at)))]
                await bell.wait(wait_s)
                wait_s = _POLL_S

    async def _place(self, run_id: str) -> Place | None:
        async with self._db.session() as session:
            run = await session.get(Run, run_id)
            if run is None:
                return None
            ahead = await runs_ahead(session, run)
        if self._pump.cut_off(run_id) and not run.finished:
            return Place("reconnecting", None, ahead)
        return await look_up(self._runner, run, ahead)
