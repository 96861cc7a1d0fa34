"""The panels below a lesson's exercises, for one learner, in a few queries whatever their number."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncSession

from app.exercises.reviews import ReviewGroups, load_exercise_reviews
from app.exercises.submissions import Tries, list_tries
from app.exercises.views import ExerciseView, exercise_view
from app.lessons.model import Cell, Lesson
from app.progress.history import find_exercise_awards


async def load_exercises(
    session: AsyncSession, groups: ReviewGroups, learner: str | None, lesson: Lesson
) -> list[ExerciseView]:
    """The panels of all exercises of a lesson, in order."""
    tries = await list_tries(session, learner, lesson.key)
    earned = await find_exercise_awards(session, learner, lesson.key)
    reviews = await load_exercise_reviews(session, groups, learner, lesson)
    return [
        exercise_view(
            cell,
            cell.exercise,
            tries.get(cell.name, Tries()),
            earned.get(cell.name, ()),
            reviews=reviews.get(cell.name),
        )
        for cell in lesson.exercises
        if cell.exercise is not None
    ]


async def load_exercise(
    session: AsyncSession,
    groups: ReviewGroups,
    learner: str | None,
    lesson: Lesson,
    cell: Cell,
    hints_open: Sequence[int] = (),
) -> ExerciseView:
    """The panel of one exercise. ``hints_open``: how many hints of each check the page shows."""
    assert cell.exercise is not None
    tries = await list_tries(session, learner, lesson.key, cell.name)
    earned = await find_exercise_awards(session, learner, lesson.key)
    reviews = await load_exercise_reviews(session, groups, learner, lesson) if cell.exercise.is_reviewed else {}
    tried, done = tries.get(cell.name, Tries()), earned.get(cell.name, ())
    return exercise_view(cell, cell.exercise, tried, done, hints_open, reviews.get(cell.name))
