"""Answers and reviews follow a lesson, a question or an exercise that was renamed. Submissions follow their runs."""

from __future__ import annotations

from sqlalchemy.ext.asyncio import AsyncSession

from app.exercises.models import PredictionAnswer, QuizAnswer, Review
from app.lessons.former_names import Rename
from app.lessons.renaming import move_rows


async def rename_answers(session: AsyncSession, rename: Rename) -> None:
    """Of two answers to one question, the earlier is kept, as the first one."""
    for table, column in ((QuizAnswer, "quiz"), (PredictionAnswer, "prediction")):
        if rename.name:
            before = {"lesson": rename.former_lesson, column: rename.former_name}
            after = {"lesson": rename.lesson, column: rename.name}
            await move_rows(session, table, before, after, beside=["learner_id"], first_by="answered_at")
        else:
            before, after = {"lesson": rename.former_lesson}, {"lesson": rename.lesson}
            await move_rows(session, table, before, after, beside=["learner_id", column], first_by="answered_at")


async def rename_reviews(session: AsyncSession, rename: Rename) -> None:
    """All of them: a learner can have several of one exercise."""
    if rename.name:
        before = {"lesson": rename.former_lesson, "exercise": rename.former_name}
        after = {"lesson": rename.lesson, "exercise": rename.name}
    else:
        before, after = {"lesson": rename.former_lesson}, {"lesson": rename.lesson}
    await move_rows(session, Review, before, after)
