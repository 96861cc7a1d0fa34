"""Comments and their moderation."""

from __future__ import annotations

from fastapi import FastAPI

from app.comments.moderation_routes import router as moderation_router
from app.comments.moderation_routes import unlocalized_router
from app.comments.notification_content import CommentDescriber
from app.comments.personal_data import erase_comments, export_comments
from app.comments.renaming import rename_comments
from app.comments.rendering import rerender_outdated
from app.comments.routes import router
from app.comments.search_routes import router as search_router
from app.comments.thread_list import THREAD_LISTS, ThreadLists
from app.feature import Feature
from app.lessons.dependencies import CATALOG
from app.notifications.models import NotificationKind
from app.web.dependencies import SETTINGS
from app.web.part_cache import part_cache_bytes


def _setup(app: FastAPI) -> None:
    THREAD_LISTS.set(app, ThreadLists(part_cache_bytes(SETTINGS.get(app))))


FEATURE = Feature(
    name="comments",
    routers=(router, search_router, moderation_router, unlocalized_router),
    setup=_setup,
    cleanup_tasks=lambda _app: (rerender_outdated,),
    exporters={"comments": export_comments},
    renamers=(rename_comments,),
    erasers=(erase_comments,),
    describers=lambda app: dict.fromkeys(
        (NotificationKind.reply, NotificationKind.mention, NotificationKind.answered),
        CommentDescriber(CATALOG.get(app)),
    ),
)
