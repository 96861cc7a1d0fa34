"""Exercises with their checks, predictions and quizzes."""

from __future__ import annotations

from app.exercises.answer_routes import router as answer_router
from app.exercises.personal_data import RETENTION_RULES, erase_exercises, export_exercises, move_answers
from app.exercises.renaming import rename_answers
from app.exercises.routes import router
from app.exercises.run_hook import ExerciseRunHook
from app.feature import Feature
from app.lessons.dependencies import CATALOG
from app.progress.service import PROGRESS

FEATURE = Feature(
    name="exercises",
    routers=(router, answer_router),
    run_hooks=lambda app: (ExerciseRunHook(CATALOG.get(app), PROGRESS.get(app)),),
    exporters={"exercises": export_exercises},
    renamers=(rename_answers,),
    erasers=(erase_exercises,),
    mergers=lambda _app: (move_answers,),
    retention_rules=RETENTION_RULES,
)
