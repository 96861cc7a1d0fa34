"""The admin pages, and the audit log of what is done there and by commands."""

from __future__ import annotations

from app.admin.audit import AuditRetention
from app.admin.audit_routes import router as audit_router
from app.admin.people_routes import router as people_router
from app.admin.routes import router
from app.feature import Feature
from app.web.dependencies import SETTINGS

FEATURE = Feature(
    name="admin",
    routers=(router, people_router, audit_router),
    cleanup_tasks=lambda app: (AuditRetention(SETTINGS.get(app).audit_retention),),
)
