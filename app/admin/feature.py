"""The admin pages, and the audit log of what is done there and by commands."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI
from sqlalchemy.exc import SQLAlchemyError

from app.accounts.sign_up import FIRST_ADMIN_RECORDER
from app.admin.audit import AuditRetention, record_first_admin
from app.admin.audit_routes import router as audit_router
from app.admin.live_routes import router as live_router
from app.admin.mail_routes import router as mail_router
from app.admin.maintenance_routes import router as maintenance_router
from app.admin.people_routes import router as people_router
from app.admin.routes import router
from app.admin.storage_routes import router as storage_router
from app.feature import Feature
from app.web.dependencies import BUS, DATABASE, SETTINGS
from app.web.maintenance import SWITCHES


def setup(app: FastAPI) -> None:
    FIRST_ADMIN_RECORDER.set(app, record_first_admin)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Follow the site switches; the first requests know them already, unless the database is down."""
    switches, db = SWITCHES.get(app), DATABASE.get(app)
    with suppress(SQLAlchemyError, OSError):
        await switches.refresh(db)
    following = asyncio.create_task(switches.follow(db, BUS.get(app)))
    try:
        yield
    finally:
        await following


FEATURE = Feature(
    name="admin",
    routers=(router, people_router, live_router, mail_router, storage_router, maintenance_router, audit_router),
    setup=setup,
    lifespan=lifespan,
    cleanup_tasks=lambda app: (AuditRetention(SETTINGS.get(app).audit_retention),),
)
