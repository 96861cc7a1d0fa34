"""Following one run: carry its events from the supervisor into SQL until it has finished, whatever breaks.

Output is never lost: the supervisor keeps an event until it is acknowledged, and it is acknowledged after the commit.
Whatever breaks in between (the stream, this process, another process that follows the same run), following begins
again behind the last number stored. A run that never reached the supervisor is handed in, as often as it takes: ids
make that harmless. A run that the supervisor had and no longer knows is lost, and its log says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress

import structlog
from pydantic import ValidationError

from app.bus import Bus
from app.db import Database
from app.progress.service import topic
from app.runs import log
from app.runs.awards import Awards
from app.runs.batches import batches
from app.runs.models import Run
from app.runs.quotas import Owner, Quotas
from app.runs.service import run_request
from app.storage import log_failure
from runners.client import NotKnown, Refused, RunnerClient, RunnerUnavailable
from runners.protocol import Event, Limit, Outcome

_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 3.0
_SILENCE_S = 2.0
"""After so long without an event we look whether another process has got them instead."""
_STOPS_WITHIN_S = 10.0
"""How long a run that is cut short may take to end."""
_MOST_UNREADABLE = 5
"""How often in a row the stream may be nonsense before the run is given up."""

Batches = AsyncGenerator[list[Event], None]

_log = structlog.get_logger("follower")


class Follower:
    """One run being followed by this process."""

    def __init__(
        self,
        run_id: str,
        db: Database,
        runner: RunnerClient,
        bus: Bus,
        most_stored_bytes: int,
        awards: Awards | None = None,
        quotas: Quotas | None = None,
        place: str | None = None,
    ) -> None:
        self.run_id = run_id
        self.cut_off = False
        """True while the supervisor cannot be reached."""
        self._db = db
        self._runner = runner
        self._bus = bus
        self._most_stored_bytes = most_stored_bytes
        self._awards = awards
        self._quotas = quotas
        self._place = place
        """The network address that a visitor's run came from, if it is counted."""
        self._reached = -1
        self._unreadable = 0

    async def follow(self) -> None:
        """Return when the run has finished."""
        pause_s = _FIRST_PAUSE_S
        while True:
            reached = self._reached
            try:
                if await self._advance():
                    break
            except (RunnerUnavailable, OSError) as e:
                _log.info("following was interrupted", run=self.run_id, reason=str(e)[:300])
            except Exception as e:
                log_failure(_log, "following failed", e, run=self.run_id)
            self._set_cut_off(True)
            pause_s = _FIRST_PAUSE_S if self._reached > reached else min(pause_s * 2, _LONGEST_PAUSE_S)
            await asyncio.sleep(pause_s)
        self._set_cut_off(False)
        self._bus.wake(self.run_id)

    async def _advance(self) -> bool:
        """Carry events as far as they come; True once the log has ended."""
        at = await log.progress(self._db, self.run_id)
        if at is None or at.finished:
            return True
        if at.last_seq > self._reached:
            self._reached, self._unreadable = at.last_seq, 0
        try:
            await self._carry(at)
        except NotKnown:
            if at.handed_in:
                await self._give_up(Outcome.lost, "the supervisor no longer knows it")
        except Refused as e:
            await self._give_up(Outcome.lost, f"the supervisor refused it: {e}")
        except (log.BrokenSequence, ValidationError) as e:
            self._unreadable += 1
            _log.error("events cannot be stored", run=self.run_id, reason=str(e)[:500], times=self._unreadable)
            if self._unreadable >= _MOST_UNREADABLE:
                await self._give_up(Outcome.lost, "its events cannot be stored")
            else:
                raise RunnerUnavailable("unreadable events") from e
        at = await log.progress(self._db, self.run_id)
        return at is None or at.finished

    async def _carry(self, at: log.Progress) -> None:
        if not at.handed_in:
            await self._hand_in()
        elif self.cut_off:
            await self._runner.health()  # a silent stream would not tell that the supervisor is back
        self._set_cut_off(False)
        last, size = at.last_seq, at.stored_bytes
        owner = await self._quotas.owner_of(self.run_id, self._place) if self._quotas is not None else None
        async with aclosing(batches(self._runner.events(self.run_id, after=last), _SILENCE_S)) as coming:
            async for batch in coming:
                if not batch:
                    if await self._overtaken(last):
                        return
                    continue
                if owner is not None and (limit := await self._limit(owner, last, batch)):
                    await self._cut_short(coming, batch, limit)
                    return
                stored = await self._store(last, batch)
                if stored is None:
                    return
                last, size = stored.last_seq, size + stored.size
                if self._quotas is not None and owner is not None:
                    self._quotas.count(owner, stored.size)
                self._bus.wake(self.run_id)
                if stored.awarded is not None:
                    self._bus.wake(topic(stored.awarded))
                with suppress(NotKnown):
                    await self._runner.acknowledge(self.run_id, last)
                if size > self._most_stored_bytes and batch[-1].kind != "finished":
                    await self._cut_short(coming, batch)
                    return

    async def _limit(self, owner: Owner, last: int, batch: Sequence[Event]) -> Limit | None:
        """The limit on what may be stored, if the batch does not fit into it."""
        assert self._quotas is not None
        size = log.size_of([event for event in batch if event.seq > last])
        return await self._quotas.room(owner, size, last=batch[-1].kind == "finished")

    async def _store(self, last: int, batch: Sequence[Event]) -> log.Stored | None:
        """Store what is new of a batch; None once the log has ended."""
        while fresh := [event for event in batch if event.seq > last]:
            if fresh[0].seq == last + 1 and (stored := await self._append(last, fresh)):
                return stored
            at = await log.progress(self._db, self.run_id)
            if at is None or at.finished:
                return None
            if at.last_seq == last:
                raise log.BrokenSequence(f"event {fresh[0].seq} came behind {last}")
            last = at.last_seq  # another process was faster
        return log.Stored(last, 0)

    async def _append(self, last: int, fresh: Sequence[Event]) -> log.Stored | None:
        return await log.append(self._db, self.run_id, last, fresh, self._awards)

    async def _overtaken(self, last: int) -> bool:
        """True if another process has stored more than we were sent: the supervisor has forgotten what we wait for."""
        at = await log.progress(self._db, self.run_id)
        return at is None or at.finished or at.last_seq > last

    async def _hand_in(self) -> None:
        async with self._db.session() as session:
            run = await session.get_one(Run, self.run_id)
        await self._runner.submit(run_request(run))
        await log.mark_handed_in(self._db, self.run_id)

    async def _cut_short(self, coming: Batches, batch: Sequence[Event], limit: Limit | None = None) -> None:
        """Stop the run and end its log here: the log is full, or a limit on what may be stored was reached.

        The rest of its output is thrown away, up to the end: until then the session cannot take another run.
        """
        with suppress(NotKnown, Refused):
            await self._runner.stop(self.run_id)
        seen = batch[-1]
        with suppress(TimeoutError, StopAsyncIteration):
            async with asyncio.timeout(_STOPS_WITHIN_S):
                while seen.kind != "finished":
                    rest = await anext(coming)
                    seen = rest[-1] if rest else seen
        reason = "its log is full" if limit is None else "a storage limit was reached"
        await self._give_up(Outcome.output, reason, limit)
        with suppress(NotKnown):
            await self._runner.acknowledge(self.run_id, seen.seq)

    async def _give_up(self, outcome: Outcome, reason: str, limit: Limit | None = None) -> None:
        _log.warning("a run is given up", run=self.run_id, outcome=outcome.value, reason=reason)
        await log.finish(self._db, self.run_id, outcome, limit)

    def _set_cut_off(self, cut_off: bool) -> None:
        if cut_off != self.cut_off:
            self.cut_off = cut_off
            self._bus.wake(self.run_id)
