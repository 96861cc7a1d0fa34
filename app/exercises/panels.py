"""The panels below a lesson's exercises, for one learner, in two queries whatever their number."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncSession

from app.exercises.submissions import Tries, list_tries
from app.exercises.views import ExerciseView, exercise_view
from app.lessons.model import Cell, Lesson
from app.progress.history import find_exercise_awards


async def load_exercises(session: AsyncSession, learner: str | None, lesson: Lesson) -> list[ExerciseView]:
    """The panels of all exercises of a lesson, in order."""
    tries = await list_tries(session, learner, lesson.key)
    earned = await find_exercise_awards(session, learner, lesson.key)
    return [
        exercise_view(cell, cell.exercise, tries.get(cell.name, Tries()), earned.get(cell.name, ()))
        for cell in lesson.exercises
        if cell.exercise is not None
    ]


async def load_exercise(
    session: AsyncSession, learner: str | None, lesson: Lesson, cell: Cell, hints_open: Sequence[int] = ()
) -> ExerciseView:
    """The panel of one exercise. ``hints_open``: how many hints of each check the page shows."""
    assert cell.exercise is not None
    tries = await list_tries(session, learner, lesson.key, cell.name)
    earned = await find_exercise_awards(session, learner, lesson.key)
    return exercise_view(cell, cell.exercise, tries.get(cell.name, Tries()), earned.get(cell.name, ()), hints_open)
