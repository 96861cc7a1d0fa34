"""Finished runs with output, as the pump would have stored them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from app.db import Database, now
from app.runs import log
from app.runs.models import ROW_BYTES, Run
from runners.protocol import Event, Finished, Outcome, Started, Text
from tests.factories.runs import a_run


async def a_run_with_output(
    db: Database, lines: int = 3, size: int = 100, *, at: datetime | None = None, finish: bool = True, **facts: Any
) -> str:
    """Store a run that printed so many lines of so many characters, at some time; returns its id."""
    at = at or now()
    code = facts.setdefault("code", "1")
    run_id = await a_run(db, created_at=at, stored_bytes=ROW_BYTES + len(code.encode()), **facts)
    events: list[Event] = [Started(seq=1, at_ms=0)]
    events += [Text(seq=seq, at_ms=seq, stream="stdout", text="x" * size) for seq in range(2, 2 + lines)]
    if finish:
        events.append(Finished(seq=lines + 2, at_ms=lines + 2, outcome=Outcome.ok, duration_ms=5))
    await log.append(db, run_id, 0, events)
    if finish:
        async with db.writing() as session:
            run = await session.get_one(Run, run_id)
            run.finished_at = at
    return run_id
