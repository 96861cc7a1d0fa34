"""Exercises with their checks and reviews, predictions and quizzes."""

from __future__ import annotations

from app.exercises.answer_routes import router as answer_router
from app.exercises.notification_content import ReviewDescriber
from app.exercises.personal_data import RETENTION_RULES, erase_exercises, export_exercises, export_reviews, move_answers
from app.exercises.renaming import rename_answers, rename_reviews
from app.exercises.review_routes import router as review_router
from app.exercises.reviews import REVIEW_GROUPS
from app.exercises.routes import router
from app.exercises.run_hook import ExerciseRunHook
from app.feature import Feature
from app.lessons.dependencies import CATALOG
from app.notifications.models import NotificationKind
from app.progress.service import PROGRESS

FEATURE = Feature(
    name="exercises",
    routers=(router, answer_router, review_router),
    run_hooks=lambda app: (ExerciseRunHook(CATALOG.get(app), PROGRESS.get(app), REVIEW_GROUPS.get(app)),),
    exporters={"exercises": export_exercises, "reviews": export_reviews},
    renamers=(rename_answers, rename_reviews),
    describers=lambda app: {NotificationKind.review: ReviewDescriber(CATALOG.get(app))},
    erasers=(erase_exercises,),
    mergers=lambda _app: (move_answers,),
    retention_rules=RETENTION_RULES,
)
