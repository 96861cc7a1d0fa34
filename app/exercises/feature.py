"""Exercises with their checks, predictions and quizzes."""

from __future__ import annotations

from fastapi import FastAPI

from app.exercises.answer_routes import router as answer_router
from app.exercises.personal_data import RETENTION_RULES, erase_exercises, export_exercises, move_answers
from app.exercises.recording import ExerciseRecorder
from app.exercises.routes import router
from app.feature import Feature
from app.lessons.dependencies import CATALOG
from app.progress.service import PROGRESS
from app.web.access import Access


def run_hooks(app: FastAPI) -> list[ExerciseRecorder]:
    return [ExerciseRecorder(CATALOG.get(app), PROGRESS.get(app))]


FEATURE = Feature(
    name="exercises",
    routers=(router, answer_router),
    access={
        "submit_exercise": Access.learner,
        "exercise_panel": Access.learner,
        "exercise_hints": Access.learner,
        "exercise_try": Access.learner,
        "exercise_solution": Access.learner,
        "lesson_work": Access.learner,
        "answer_quiz": Access.learner,
        "prediction": Access.learner,
        "answer_prediction": Access.learner,
    },
    run_hooks=run_hooks,
    exporters={"exercises": export_exercises},
    erasers=(erase_exercises,),
    mergers=lambda _app: (move_answers,),
    retention_rules=RETENTION_RULES,
)
