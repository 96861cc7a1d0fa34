"""Follows one run: copies its events from the supervisor into SQL until the run has finished, despite any failure.

Output is never lost: the supervisor keeps each event until it is acknowledged, and it is acknowledged after the commit.
If anything fails in between (the stream, this process, another process that follows the run), following resumes after
the last event stored. A run that never reached the supervisor is submitted again and again; the run's ID makes that
harmless. A run that the supervisor had but no longer knows is lost, and its log says so. A run that was deleted with
its account is ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress

import structlog
from pydantic import ValidationError

from app.bus import Bus
from app.database_health import log_failure
from app.db import Database
from app.runs import event_log
from app.runs.awards import RunAwards
from app.runs.batching import batch_events
from app.runs.judgements import ExerciseGone
from app.runs.models import Run
from app.runs.quotas import QuotaOwner, Quotas
from app.runs.service import run_request
from runners.wire.client import RequestRefused, ResourceNotFound, RunnerClient, RunnerUnavailable
from runners.wire.protocol import Event, Outcome, ReachedLimit, RunRequest

_INITIAL_BACKOFF_S = 0.1
_MAX_BACKOFF_S = 3.0
_IDLE_CHECK_S = 2.0
"""After this time without an event, check whether another process received the events instead."""
_STOP_TIMEOUT_S = 10.0
"""How long a run may take to end after it is cut short."""
_MAX_MALFORMED_STREAMS = 5
"""Invalid streams in a row after which the run is given up."""

EventBatches = AsyncGenerator[list[Event], None]

_log = structlog.get_logger("follower")


async def end_run(runner: RunnerClient, run_id: str, session_id: str) -> None:
    """Stop a run, then end its session, because code may ignore the interrupt. A judgement has no session."""
    with suppress(RequestRefused):
        await runner.stop(run_id)
    with suppress(RequestRefused):
        await runner.end(session_id)


class RunFollower:
    """Follows one run in this process."""

    def __init__(
        self,
        run_id: str,
        db: Database,
        runner: RunnerClient,
        bus: Bus,
        quotas: Quotas,
        awards: RunAwards | None = None,
        network: str | None = None,
        request_of: Callable[[Run], RunRequest] = run_request,
    ) -> None:
        self.run_id = run_id
        self.cut_off = False
        """True while the supervisor cannot be reached."""
        self._db = db
        self._runner = runner
        self._bus = bus
        self._awards = awards
        self._quotas = quotas
        self._network = network
        """The network address of a visitor's run, if it counts toward a quota."""
        self._request_of = request_of
        self._session_id = ""
        self._reached = -1
        self._unreadable = 0

    async def follow(self) -> None:
        """Follow the run; returns once it has finished."""
        pause_s = _INITIAL_BACKOFF_S
        while True:
            reached = self._reached
            try:
                if await self._advance():
                    break
            except (RunnerUnavailable, OSError) as e:
                _log.info("following a run was interrupted", run=self.run_id, reason=str(e)[:300])
            except Exception as e:
                log_failure(_log, "following a run failed", e, run=self.run_id)
            self._set_cut_off(True)
            pause_s = _INITIAL_BACKOFF_S if self._reached > reached else min(pause_s * 2, _MAX_BACKOFF_S)
            await asyncio.sleep(pause_s)
        self._set_cut_off(False)
        self._bus.publish(event_log.run_topic(self.run_id))  # another process may have stored the end

    async def _advance(self) -> bool:
        """Store events until the stream ends. True once the log is complete."""
        at = await self._find_position()
        if at is None or at.finished:
            return True
        if at.last_seq > self._reached:
            self._reached, self._unreadable = at.last_seq, 0
        try:
            await self._carry(at)
        except ResourceNotFound:
            if at.submitted:
                await self._give_up(Outcome.lost, "the supervisor no longer knows it")
        except RequestRefused as e:
            await self._give_up(Outcome.lost, f"the supervisor rejected it: {e}")
        except ExerciseGone as e:
            await self._give_up(Outcome.lost, f"the lesson no longer has the exercise: {e}")
        except (event_log.SequenceGap, ValidationError) as e:
            self._unreadable += 1
            _log.error("events cannot be stored", run=self.run_id, reason=str(e)[:500], times=self._unreadable)
            if self._unreadable >= _MAX_MALFORMED_STREAMS:
                await self._give_up(Outcome.lost, "its events cannot be stored")
            else:
                raise RunnerUnavailable("unreadable events") from e
        at = await self._find_position()
        return at is None or at.finished

    async def _find_position(self) -> event_log.LogPosition | None:
        """How far the log has come; None if the run was deleted, and then its code ends, too."""
        at = await event_log.get_position(self._db, self.run_id)
        if at is not None:
            self._session_id = at.session_id
        elif self._session_id:
            await end_run(self._runner, self.run_id, self._session_id)
            _log.info("deleted run ended", run=self.run_id)
        return at

    async def _carry(self, at: event_log.LogPosition) -> None:
        if not at.submitted:
            await self._submit()
        elif self.cut_off:
            await self._runner.health()  # a stream without events does not show that the supervisor is back
        self._set_cut_off(False)
        last = at.last_seq
        owner = await self._quotas.owner_of(self.run_id, self._network)
        async with aclosing(batch_events(self._runner.events(self.run_id, after=last), _IDLE_CHECK_S)) as coming:
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
                last = stored.last_seq
                if owner is not None:
                    self._quotas.count(owner, stored.size)
                with suppress(ResourceNotFound):
                    await self._runner.acknowledge(self.run_id, last)

    async def _limit(self, owner: QuotaOwner, last: int, batch: Sequence[Event]) -> ReachedLimit | None:
        """The limit on stored output that the batch would exceed, if any."""
        size = event_log.stored_size([event for event in batch if event.seq > last])
        return await self._quotas.room(owner, size, last=batch[-1].kind == "finished")

    async def _store(self, last: int, batch: Sequence[Event]) -> event_log.AppendResult | None:
        """Store the new events of a batch; None once the log has ended."""
        while fresh := [event for event in batch if event.seq > last]:
            if fresh[0].seq == last + 1:
                stored = await event_log.append_events(self._db, self.run_id, last, fresh, self._awards)
                if stored is not None:
                    return stored
            at = await event_log.get_position(self._db, self.run_id)
            if at is None or at.finished:
                return None
            if at.last_seq == last:
                raise event_log.SequenceGap(f"event {fresh[0].seq} came after event {last}")
            last = at.last_seq  # another process was faster
        return event_log.AppendResult(last, 0)

    async def _overtaken(self, last: int) -> bool:
        """True if another process has stored more than we have: the supervisor has deleted the events we wait for."""
        at = await event_log.get_position(self._db, self.run_id)
        return at is None or at.finished or at.last_seq > last

    async def _submit(self) -> None:
        async with self._db.session() as session:
            run = await session.get_one(Run, self.run_id)
        await self._runner.submit(self._request_of(run))
        await event_log.mark_submitted(self._db, self.run_id)

    async def _cut_short(self, coming: EventBatches, batch: Sequence[Event], limit: ReachedLimit) -> None:
        """Stop the run and end its log here, because a limit on stored output was reached.

        Discards the rest of its output until the run ends: before that, the session cannot start another run.
        """
        with suppress(ResourceNotFound, RequestRefused):
            await self._runner.stop(self.run_id)
        seen = batch[-1]
        with suppress(TimeoutError, StopAsyncIteration):
            async with asyncio.timeout(_STOP_TIMEOUT_S):
                while seen.kind != "finished":
                    rest = await anext(coming)
                    seen = rest[-1] if rest else seen
        await self._give_up(Outcome.output, "a storage limit was reached", limit)
        with suppress(ResourceNotFound):
            await self._runner.acknowledge(self.run_id, seen.seq)

    async def _give_up(self, outcome: Outcome, reason: str, limit: ReachedLimit | None = None) -> None:
        _log.warning("run given up", run=self.run_id, outcome=outcome.value, reason=reason)
        await event_log.finish_run(self._db, self.run_id, outcome, limit, self._awards)

    def _set_cut_off(self, cut_off: bool) -> None:
        if cut_off != self.cut_off:
            self.cut_off = cut_off
            self._bus.publish(event_log.run_topic(self.run_id))
