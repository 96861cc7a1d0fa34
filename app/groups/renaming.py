"""Deadlines follow a lesson or an exercise that was renamed."""

from __future__ import annotations

from sqlalchemy.ext.asyncio import AsyncSession

from app.groups.models import GroupDeadline
from app.lessons.former_names import Rename
from app.lessons.renaming import move_rows


async def rename_deadlines(session: AsyncSession, rename: Rename) -> None:
    """Of two deadlines for one exercise, the later is kept."""
    if rename.name:
        before = {"lesson": rename.former_lesson, "exercise": rename.former_name}
        after = {"lesson": rename.lesson, "exercise": rename.name}
        await move_rows(session, GroupDeadline, before, after, beside=["group_id"], last_by="due_at")
    else:
        before, after = {"lesson": rename.former_lesson}, {"lesson": rename.lesson}
        await move_rows(session, GroupDeadline, before, after, beside=["group_id", "exercise"], last_by="due_at")
