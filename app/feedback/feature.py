"""Problem reports and lesson votes."""

from __future__ import annotations

from app.feature import Feature
from app.feedback.inbox_routes import router as inbox_router
from app.feedback.personal_data import RETENTION_RULES, erase_feedback, export_feedback, move_feedback
from app.feedback.renaming import rename_feedback
from app.feedback.routes import router

FEATURE = Feature(
    name="feedback",
    routers=(router, inbox_router),
    exporters={"feedback": export_feedback},
    renamers=(rename_feedback,),
    erasers=(erase_feedback,),
    mergers=lambda _app: (move_feedback,),
    retention_rules=RETENTION_RULES,
)
