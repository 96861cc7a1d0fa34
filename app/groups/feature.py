"""Groups: people who take a course together, and what their instructors see of them."""

from __future__ import annotations

from fastapi import FastAPI

from app.accounts.sign_up import INVITED_GROUP_FINDER
from app.exercises.reviews import REVIEW_GROUPS, REVIEWERS
from app.feature import Feature
from app.groups.api_routes import router as api_router
from app.groups.member_routes import CSRF_EXEMPT_PATHS
from app.groups.member_routes import router as member_router
from app.groups.members import find_invited_group_name
from app.groups.notification_content import describe_waiting_reviews
from app.groups.page_piece import deadlines_piece
from app.groups.personal_data import export_groups
from app.groups.reminders import withdraw_reminders
from app.groups.renaming import rename_deadlines
from app.groups.review_routes import router as review_router
from app.groups.reviews import find_review_groups, find_reviewers
from app.groups.routes import router
from app.groups.settings_routes import router as settings_router
from app.lessons.dependencies import CATALOG
from app.notifications.models import NotificationKind


def setup(app: FastAPI) -> None:
    """The staff of groups reviews exercises. Whoever signs up by an invitation reads to which group."""
    INVITED_GROUP_FINDER.set(app, find_invited_group_name)
    REVIEW_GROUPS.set(app, find_review_groups)
    REVIEWERS.set(app, find_reviewers)


FEATURE = Feature(
    name="groups",
    routers=(member_router, settings_router, review_router, router, api_router),
    setup=setup,
    page_pieces=lambda app: (deadlines_piece(CATALOG.get(app)),),
    csrf_exempt_paths=(CSRF_EXEMPT_PATHS,),
    exporters={"groups": export_groups},
    erasers=(withdraw_reminders,),
    renamers=(rename_deadlines,),
    describers=lambda _app: {NotificationKind.review_request: describe_waiting_reviews},
)
