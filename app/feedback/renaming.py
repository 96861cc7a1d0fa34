"""Problem reports and votes follow a lesson or a cell that was renamed."""

from __future__ import annotations

from sqlalchemy.ext.asyncio import AsyncSession

from app.feedback.models import LessonVote, ProblemReport
from app.lessons.former_names import Rename
from app.lessons.renaming import move_rows


async def rename_feedback(session: AsyncSession, rename: Rename) -> None:
    """Of two votes on one lesson, the later is kept."""
    if rename.name:
        before = {"lesson": rename.former_lesson, "cell": rename.former_name}
        await move_rows(session, ProblemReport, before, {"lesson": rename.lesson, "cell": rename.name})
        return
    before, after = {"lesson": rename.former_lesson}, {"lesson": rename.lesson}
    await move_rows(session, ProblemReport, before, after)
    await move_rows(session, LessonVote, before, after, beside=["learner_id"], last_by="updated_at")
