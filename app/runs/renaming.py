"""Runs, drafts and scratch cells follow a lesson or a cell that was renamed."""

from __future__ import annotations

from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncSession

from app.lessons.former_names import Rename
from app.lessons.renaming import move_rows
from app.runs.models import CodeDraft, Run, ScratchCell


async def rename_runs(session: AsyncSession, rename: Rename) -> None:
    """Of two drafts of one cell, the later is kept."""
    if rename.name:
        before = {"lesson": rename.lesson, "cell": rename.former_name}
        after = {"lesson": rename.lesson, "cell": rename.name}
        await move_rows(session, CodeDraft, before, after, beside=["account_id"], last_by="updated_at")
        anchored = update(ScratchCell).where(
            ScratchCell.lesson == rename.lesson, ScratchCell.anchor == rename.former_name
        )
        await session.execute(anchored.values(anchor=rename.name).execution_options(synchronize_session=False))
    else:
        before, after = {"lesson": rename.former_lesson}, {"lesson": rename.lesson}
        await move_rows(session, CodeDraft, before, after, beside=["account_id", "cell"], last_by="updated_at")
        await move_rows(session, ScratchCell, before, after, beside=["learner_id", "name"], last_by="updated_at")
    await move_rows(session, Run, before, after)
