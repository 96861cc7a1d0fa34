"""Runs stored directly in the database."""

from __future__ import annotations

import secrets
from typing import Any

from app.db import Database, now
from app.runs.models import Run, RunState


async def store_run(db: Database, **facts: Any) -> str:
    """Store a run with these values, by default queued by a visitor; returns its id."""
    usual: dict[str, Any] = {
        "id": secrets.token_hex(16),
        "learner_id": "v",
        "session_id": "s",
        "state": RunState.queued,
    }
    usual |= {"lesson": "small/first", "cell": "hello", "code": "1", "topology": "gpu:4", "keras": 3, "language": "en"}
    run = Run(**usual | {"created_at": now()} | facts)
    async with db.writing() as session:
        session.add(run)
    return run.id


async def store_runs(db: Database, visitor: str, count: int) -> None:
    """Store runs of a visitor."""
    for _ in range(count):
        await store_run(db, learner_id=visitor)
