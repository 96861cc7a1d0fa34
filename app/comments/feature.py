"""Comments and their moderation."""

from __future__ import annotations

from fastapi import FastAPI

from app.comments.moderation_routes import router as moderation_router
from app.comments.moderation_routes import unlocalized_router
from app.comments.notification_content import CommentDescriber
from app.comments.personal_data import erase_comments, export_comments
from app.comments.rendering import rerender_outdated
from app.comments.routes import router
from app.feature import Feature
from app.lessons.dependencies import CATALOG
from app.notifications.models import NotificationKind
from app.web.access import Access


def describers(app: FastAPI) -> dict[NotificationKind, CommentDescriber]:
    describe = CommentDescriber(CATALOG.get(app))
    return dict.fromkeys((NotificationKind.reply, NotificationKind.mention, NotificationKind.answered), describe)


FEATURE = Feature(
    name="comments",
    routers=(router, moderation_router, unlocalized_router),
    access={
        "comments": Access.public,
        "create_comment": Access.account,
        "comment": Access.public,
        "reply_form": Access.public,
        "comment_form": Access.account,
        "comment_history": Access.account,
        "change_comment": Access.account,
        "delete_comment": Access.account,
        "react_to_comment": Access.account,
        "report_comment": Access.account,
        "comment_handles": Access.account,
        "moderation": Access.instructor,
        "moderate_comment": Access.instructor,
        "comments_by_author": Access.public,
        "mention": Access.public,
    },
    cleanup_tasks=lambda _app: (rerender_outdated,),
    exporters={"comments": export_comments},
    erasers=(erase_comments,),
    describers=describers,
)
