"""XP, levels, achievements and reading progress."""

from __future__ import annotations

from fastapi import FastAPI

from app.feature import Feature
from app.lessons.dependencies import CATALOG
from app.notifications.models import NotificationKind
from app.progress.achievement_catalog import ACHIEVEMENTS, AchievementCatalog
from app.progress.api_routes import router as api_router
from app.progress.notification_content import AchievementDescriber
from app.progress.page_piece import progress_piece
from app.progress.page_routes import router as page_router
from app.progress.personal_data import RETENTION_RULES, erase_progress, export_progress
from app.progress.renaming import rename_progress
from app.progress.routes import localized_router, router
from app.progress.service import PROGRESS, ProgressService


def setup(app: FastAPI) -> None:
    catalog = CATALOG.get(app)
    achievements = ACHIEVEMENTS.set(app, AchievementCatalog(catalog))
    catalog.after_reload(achievements.reload)
    PROGRESS.set(app, ProgressService(catalog, achievements))


FEATURE = Feature(
    name="progress",
    routers=(localized_router, page_router, router, api_router),
    setup=setup,
    page_pieces=lambda app: (progress_piece(PROGRESS.get(app)),),
    exporters={"progress": export_progress},
    renamers=(rename_progress,),
    erasers=(erase_progress,),
    mergers=lambda app: (PROGRESS.get(app).ledger.merge,),
    retention_rules=RETENTION_RULES,
    describers=lambda app: {NotificationKind.achievement: AchievementDescriber(ACHIEVEMENTS.get(app))},
)
