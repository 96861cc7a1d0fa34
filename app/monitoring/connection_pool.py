"""How many of this process's connections to the database are in use."""

from __future__ import annotations

from typing import Any

from sqlalchemy import QueuePool, event
from sqlalchemy.ext.asyncio import AsyncEngine

from app.metrics import CONNECTIONS_IN_USE, CONNECTIONS_LIMIT


def measure_connections(engine: AsyncEngine, limit: int) -> None:
    """Keep the gauges up to date from now on."""
    pool = engine.sync_engine.pool
    CONNECTIONS_LIMIT.set(limit)
    CONNECTIONS_IN_USE.set(pool.checkedout() if isinstance(pool, QueuePool) else 0)

    @event.listens_for(engine.sync_engine, "checkout")
    def _taken(*_: Any) -> None:
        CONNECTIONS_IN_USE.inc()

    @event.listens_for(engine.sync_engine, "checkin")
    def _returned(*_: Any) -> None:
        CONNECTIONS_IN_USE.dec()
