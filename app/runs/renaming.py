"""Runs, drafts and scratch cells follow a lesson or a cell that was renamed."""

from __future__ import annotations

from sqlalchemy import exists, or_, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased

from app.lessons.former_names import Rename
from app.lessons.renaming import move_rows
from app.runs.models import CodeDraft, Run, ScratchCell


async def rename_runs(session: AsyncSession, rename: Rename) -> None:
    """Of two drafts of one cell, the later is kept."""
    if rename.name:
        before = {"lesson": rename.former_lesson, "cell": rename.former_name}
        after = {"lesson": rename.lesson, "cell": rename.name}
        await move_rows(session, CodeDraft, before, after, beside=["account_id"], last_by="updated_at")
        twin = aliased(ScratchCell)  # of the same name in the other lesson: then both stay where they are
        twins = exists().where(
            twin.learner_id == ScratchCell.learner_id, twin.name == ScratchCell.name, twin.lesson == rename.lesson
        )
        anchored = (
            ScratchCell.lesson == rename.former_lesson,
            ScratchCell.anchor == rename.former_name,
            or_(ScratchCell.lesson == rename.lesson, ~twins),
        )
        scratch = exists().where(ScratchCell.learner_id == Run.learner_id, ScratchCell.name == Run.cell, *anchored)
        added = (Run.lesson == rename.former_lesson, scratch)
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
