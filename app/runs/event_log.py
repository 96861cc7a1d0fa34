"""The event log of a run in SQL: events 1, 2, 3, … without a gap, written in batches by the fastest writer.

``runs.last_seq`` is an optimistic lock: a batch is stored only if the column still has the value that the writer read
(compare and swap in one UPDATE). So several web processes can follow a run, and every event is stored exactly once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple, cast

from sqlalchemy import CursorResult, insert, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.bus import publish_on_commit
from app.db import Database, now
from app.runs.awards import RunAwards
from app.runs.models import EVENT_ROW_BYTES, Run, RunEvent, RunState
from app.runs.run_metrics import count_stored
from app.runs.run_spans import record_run_spans
from runners.wire.protocol import EVENT_ADAPTER, Event, FinishedEvent, Outcome, ReachedLimit, StartedEvent

READ_BATCH_SIZE = 500


class SequenceGap(Exception):
    """The events do not follow on from each other; they are not stored."""


@dataclass(frozen=True, slots=True)
class AppendResult:
    """What a writer has stored: the last event's number and the size."""

    last_seq: int
    size: int
    """Bytes in the database."""


class StoredEvent(NamedTuple):
    """One stored event, in the form sent to the browser."""

    seq: int
    kind: str
    payload: str
    """The event as JSON on one line."""


@dataclass(frozen=True, slots=True)
class LogPosition:
    """How far a run's log has come."""

    last_seq: int
    finished: bool
    submitted: bool
    created_at: datetime
    session_id: str


def run_topic(run_id: str) -> str:
    """Published when a run's events were stored, or when contact with the supervisor was lost or restored."""
    return f"run {run_id}"


async def get_position(db: Database, run_id: str) -> LogPosition | None:
    """How far a run's log has come; None if the run does not exist."""
    columns = select(Run.last_seq, Run.state, Run.submitted_at, Run.created_at, Run.session_id)
    async with db.session() as session:
        row = (await session.execute(columns.where(Run.id == run_id))).one_or_none()
    if row is None:
        return None
    last_seq, state, submitted_at, created_at, session_id = row
    submitted = submitted_at is not None or last_seq > 0
    return LogPosition(last_seq, state == RunState.finished, submitted, created_at, session_id)


async def append_events(
    db: Database, run_id: str, after: int, events: Sequence[Event], awards: RunAwards | None = None
) -> AppendResult | None:
    """Store events that follow number ``after``; None if another writer was faster and nothing was stored.

    With the last event, the run's XP is awarded in the same transaction. ``awards`` also removes what a learner may not
    see from an event.

    Raises:
        SequenceGap: the events are not after+1, after+2, …
    """
    if [event.seq for event in events] != list(range(after + 1, after + 1 + len(events))):
        raise SequenceGap(f"events {[event.seq for event in events][:5]}… after {after} of run {run_id}")
    async with db.writing() as session:
        visible = await awards.visible(session, run_id, events) if awards is not None else events
        rows = [_event_row(run_id, event) for event in visible]
        size = sum(EVENT_ROW_BYTES + len(row["payload"].encode()) for row in rows)
        mine = update(Run).where(Run.id == run_id, Run.last_seq == after, Run.state != RunState.finished)
        result = await session.execute(mine.values(stored_bytes=Run.stored_bytes + size, **_run_columns(events)))
        if cast(CursorResult[Any], result).rowcount == 0:
            return None
        await session.execute(insert(RunEvent), rows)
        publish_on_commit(session, run_topic(run_id))
        end = events[-1]
        if awards is not None and isinstance(end, FinishedEvent):
            await awards.for_end(session, run_id, end)
    count_stored(events)
    record_run_spans(events)
    return AppendResult(end.seq, size)


def stored_size(events: Sequence[Event]) -> int:
    """Bytes that the events take in the database."""
    return sum(EVENT_ROW_BYTES + len(_stored_form(event).encode()) for event in events)


async def finish_run(
    db: Database,
    run_id: str,
    outcome: Outcome,
    limit: ReachedLimit | None = None,
    awards: RunAwards | None = None,
) -> None:
    """End the log where the supervisor cannot. Idempotent."""
    while (state := await get_position(db, run_id)) is not None and not state.finished:
        at_ms = max(0, int((now() - state.created_at) / timedelta(milliseconds=1)))
        last = FinishedEvent(seq=state.last_seq + 1, at_ms=at_ms, outcome=outcome, limit=limit)
        if await append_events(db, run_id, state.last_seq, [last], awards):
            return


async def read_stored_events(db: Database, run_id: str, after: int, most: int = READ_BATCH_SIZE) -> list[StoredEvent]:
    """The stored events after number ``after``, in order, as JSON."""
    lines = select(RunEvent.seq, RunEvent.kind, RunEvent.payload).where(RunEvent.run_id == run_id, RunEvent.seq > after)
    async with db.session() as session:
        return [StoredEvent(*row) for row in await session.execute(lines.order_by(RunEvent.seq).limit(most))]


async def read_events(session: AsyncSession, run_id: str, *kinds: str) -> list[Event]:
    """The stored events of a run in order: those of these kinds, or all if none is given."""
    payloads = select(RunEvent.payload).where(RunEvent.run_id == run_id)
    if kinds:
        payloads = payloads.where(RunEvent.kind.in_(kinds))
    return [EVENT_ADAPTER.validate_json(payload) for payload in await session.scalars(payloads.order_by(RunEvent.seq))]


async def mark_submitted(db: Database, run_id: str) -> None:
    """Record that the supervisor has the run."""
    async with db.writing() as session:
        await session.execute(update(Run).where(Run.id == run_id).values(submitted_at=now()))


def _stored_form(event: Event) -> str:
    """The event as JSON, without what is for traces only."""
    return event.model_dump_json(exclude={"trace"})


def _event_row(run_id: str, event: Event) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "seq": event.seq,
        "kind": event.kind,
        "at_ms": event.at_ms,
        "payload": _stored_form(event),
    }


def _run_columns(events: Sequence[Event]) -> dict[str, Any]:
    """The columns of the run that follow from its events."""
    columns: dict[str, Any] = {"last_seq": events[-1].seq}
    for event in events:
        if isinstance(event, StartedEvent):
            columns |= {"state": RunState.running, "started_at": now()}
        elif isinstance(event, FinishedEvent):
            columns |= {
                "state": RunState.finished,
                "outcome": event.outcome.value,
                "finished_at": now(),
                "duration_ms": event.duration_ms,
                "first_output_ms": event.first_output_ms,
                "peak_bytes": event.peak_bytes,
            }
    return columns
