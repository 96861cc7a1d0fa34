"""Metrics for Prometheus, on an address of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from app.feature import Feature
from app.monitoring.connection_pool import measure_connections
from app.monitoring.metrics_server import serve_metrics
from app.monitoring.site_metrics import SiteState, look_at_site
from app.web.dependencies import DATABASE, RUNNER, SETTINGS


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Serve the metrics, if there is an address for them."""
    settings = SETTINGS.get(app)
    if settings.metrics_listener is None:
        yield
        return
    db, runner = DATABASE.get(app), RUNNER.get(app)
    measure_connections(db.engine, settings.database_connections)

    async def look() -> SiteState:
        return await look_at_site(db, runner)

    async with serve_metrics(*settings.metrics_listener, look):
        yield


FEATURE = Feature(
    name="monitoring",
    lifespan=lifespan,
)
