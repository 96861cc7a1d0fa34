"""Groups: people who take a course together, and what their instructors see of them."""

from __future__ import annotations

from app.feature import Feature
from app.groups.member_routes import CSRF_EXEMPT_PATHS
from app.groups.member_routes import router as member_router
from app.groups.page_piece import deadlines_piece
from app.groups.personal_data import export_groups
from app.groups.renaming import rename_deadlines
from app.groups.routes import router
from app.groups.settings_routes import router as settings_router
from app.lessons.dependencies import CATALOG

FEATURE = Feature(
    name="groups",
    routers=(member_router, settings_router, router),
    page_pieces=lambda app: (deadlines_piece(CATALOG.get(app)),),
    csrf_exempt_paths=(CSRF_EXEMPT_PATHS,),
    exporters={"groups": export_groups},
    renamers=(rename_deadlines,),
)
