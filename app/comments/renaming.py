"""Comments follow a lesson or a cell that was renamed, and are counted again there."""

from __future__ import annotations

from sqlalchemy import delete, func, insert, literal, select
from sqlalchemy.ext.asyncio import AsyncSession

from app.comments.counters import lock_counters
from app.comments.models import Comment, CommentCounter, CommentState
from app.lessons.former_names import Rename
from app.lessons.renaming import move_rows


async def rename_comments(session: AsyncSession, rename: Rename) -> None:
    """Move the comments and their counters."""
    if rename.name:
        before = {"lesson": rename.former_lesson, "cell": rename.former_name}
        after = {"lesson": rename.lesson, "cell": rename.name}
    else:
        before, after = {"lesson": rename.former_lesson}, {"lesson": rename.lesson}
    moving = set(await session.scalars(select(Comment.cell).filter_by(**before).distinct()))
    if not moving:
        await session.execute(delete(CommentCounter).filter_by(**before))
        return
    cells = {rename.name} if rename.name else moving
    for lesson, cell in sorted(
        {(rename.former_lesson, cell) for cell in moving} | {(rename.lesson, cell) for cell in cells}
    ):
        await lock_counters(session, lesson, cell)
    await move_rows(session, Comment, before, after)
    counted = (CommentCounter.lesson == rename.lesson, CommentCounter.cell.in_(cells))
    await session.execute(delete(CommentCounter).filter_by(**before).execution_options(synchronize_session=False))
    await session.execute(delete(CommentCounter).where(*counted).execution_options(synchronize_session=False))
    shown = (
        select(literal(rename.lesson), Comment.cell, func.count())
        .where(Comment.lesson == rename.lesson, Comment.cell.in_(cells), Comment.state == CommentState.shown)
        .group_by(Comment.cell)
    )
    await session.execute(insert(CommentCounter).from_select(["lesson", "cell", "comment_count"], shown))
