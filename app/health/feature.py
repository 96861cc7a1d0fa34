"""Health checks for load balancers."""

from __future__ import annotations

from fastapi import FastAPI

from app.feature import Feature
from app.health.checks import ReadinessLog
from app.health.routes import READINESS_LOG, router


def setup(app: FastAPI) -> None:
    READINESS_LOG.set(app, ReadinessLog())


FEATURE = Feature(
    name="health",
    routers=(router,),
    health_check_paths=("/healthz", "/readyz"),
    setup=setup,
)
