"""Finished runs with output, as a follower would have stored them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from app.db import Database, now
from app.runs import event_log
from app.runs.models import RUN_ROW_BYTES, Run
from runners.wire.protocol import Event, FinishedEvent, Outcome, StartedEvent, TextEvent
from tests.factories.stored_runs import store_run


async def store_run_with_output(
    db: Database, lines: int = 3, size: int = 100, *, at: datetime | None = None, finish: bool = True, **facts: Any
) -> str:
    """Store a run that printed this many lines of this many characters, at some time; returns its id."""
    at = at or now()
    code = facts.setdefault("code", "1")
    run_id = await store_run(db, created_at=at, stored_bytes=RUN_ROW_BYTES + len(code.encode()), **facts)
    events: list[Event] = [StartedEvent(seq=1, at_ms=0)]
    events += [TextEvent(seq=seq, at_ms=seq, stream="stdout", text="x" * size) for seq in range(2, 2 + lines)]
    if finish:
        events.append(FinishedEvent(seq=lines + 2, at_ms=lines + 2, outcome=Outcome.ok, duration_ms=5))
    await event_log.append_events(db, run_id, 0, events)
    if finish:
        async with db.writing() as session:
            run = await session.get_one(Run, run_id)
            run.finished_at = at
    return run_id
