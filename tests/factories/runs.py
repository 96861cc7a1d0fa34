"""Runs in SQL, for tests that only count them."""

from __future__ import annotations

import secrets

from app.db import Database, now
from app.runs.models import Run, RunState


async def add_runs(db: Database, visitor: str, count: int) -> None:
    """Store runs of a visitor."""
    async with db.writing() as session:
        for _ in range(count):
            session.add(
                Run(
                    id=secrets.token_hex(16),
                    visitor_id=visitor,
                    session_id="s",
                    lesson="small/first",
                    cell="hello",
                    code="1",
                    topology="gpu:4",
                    keras=3,
                    language="en",
                    created_at=now(),
                    state=RunState.queued,
                )
            )
