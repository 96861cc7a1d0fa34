"""Runs, drafts and scratch cells follow a lesson or a cell that was renamed."""

from __future__ import annotations

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.lessons.former_names import Rename
from app.lessons.renaming import move_rows
from app.runs.models import CodeDraft, Run, ScratchCell


async def rename_runs(session: AsyncSession, rename: Rename) -> None:
    """Of two drafts of one cell, the later is kept."""
    if rename.name:
        before = {"lesson": rename.former_lesson, "cell": rename.former_name}
        after = {"lesson": rename.lesson, "cell": rename.name}
        await move_rows(session, CodeDraft, before, after, beside=["account_id"], last_by="updated_at")
        anchored = (ScratchCell.lesson == rename.former_lesson, ScratchCell.anchor == rename.former_name)
        added = (Run.lesson == rename.former_lesson, Run.cell.in_(select(ScratchCell.name).where(*anchored)))
        for statement in (
            update(Run).where(*added).values(lesson=rename.lesson),
            update(ScratchCell).where(*anchored).values(lesson=rename.lesson, anchor=rename.name),
        ):
            await session.execute(statement.execution_options(synchronize_session=False))
    else:
        before, after = {"lesson": rename.former_lesson}, {"lesson": rename.lesson}
        await move_rows(session, CodeDraft, before, after, beside=["account_id", "cell"], last_by="updated_at")
        await move_rows(session, ScratchCell, before, after, beside=["learner_id", "name"], last_by="updated_at")
    await move_rows(session, Run, before, after)
