"""What runs hand on of a learner when a visitor becomes an account."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from sqlalchemy import CursorResult, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.db import one_at_a_time
from app.runs.models import Run


async def move_runs(session: AsyncSession, from_learner: str, to_learner: str) -> Mapping[str, int]:
    """Make one learner's runs another's. Returns how many there were."""
    await one_at_a_time(session, f"runs of {from_learner}")
    theirs = update(Run).where(Run.visitor_id == from_learner)
    moved = await session.execute(theirs.values(visitor_id=to_learner))
    return {"runs": cast(CursorResult[Any], moved).rowcount}
