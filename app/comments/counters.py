"""Counters (comments of a cell, replies, reactions, reports) change in the transaction that changes what they count.

A transaction that changes several counters first locks the cell or lesson they belong to.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncSession

from app.comments.errors import CommentNotFound
from app.comments.models import Comment, CommentCounter, CommentState
from app.db import Base, advisory_lock, dialect_insert


async def change_state(session: AsyncSession, comment: Comment, to: CommentState, **values: Any) -> None:
    """Change a comment's state and the counters.

    Raises:
        CommentNotFound: its author has deleted it in the meantime.
    """
    await lock_and_refresh(session, comment)
    was = comment.state
    if was == CommentState.deleted:
        raise CommentNotFound
    still = update(Comment).where(Comment.id == comment.id, Comment.state == was)
    moved = await session.execute(still.values(state=to, **values).execution_options(synchronize_session=False))
    if affected_rows(moved):
        await count_shown(session, comment, (to == CommentState.shown) - (was == CommentState.shown))
    await session.refresh(comment)


async def lock_counters(session: AsyncSession, lesson: str, cell: str) -> None:
    """Lock the counters of a cell or lesson until the transaction ends, so that row locks cannot deadlock."""
    await advisory_lock(session, f"comments at {lesson}#{cell}")


async def lock_and_refresh(session: AsyncSession, comment: Comment) -> None:
    """Lock the comment's counters and reload it: its state cannot change until the transaction ends."""
    await lock_counters(session, comment.lesson, comment.cell)
    await session.refresh(comment)


async def clear_answer(session: AsyncSession, comment: Comment) -> None:
    """If the comment is marked as its thread's answer, remove the mark."""
    if comment.thread_id is not None:
        answered = (Comment.id == comment.thread_id, Comment.answer_id == comment.id)
        no_more = update(Comment).where(*answered).values(answer_id=None)
        await session.execute(no_more)


async def count_shown(session: AsyncSession, comment: Comment, change: int) -> None:
    """Add ``change`` to the numbers of shown comments of its lesson or cell and of its thread."""
    if not change:
        return
    place = {"lesson": comment.lesson, "cell": comment.cell}
    await insert_if_absent(session, CommentCounter, {**place, "comment_count": 0})
    counted = update(CommentCounter).filter_by(**place).values(comment_count=CommentCounter.comment_count + change)
    await session.execute(counted.execution_options(synchronize_session=False))
    if comment.thread_id is not None:
        await increment_counters(session, comment.thread_id, reply_count=change)


async def increment_counters(session: AsyncSession, comment_id: str, **changes: int) -> None:
    """Add the given amounts to counters of a comment."""
    values = {name: getattr(Comment, name) + change for name, change in changes.items()}
    one = update(Comment).where(Comment.id == comment_id).values(**values)
    await session.execute(one.execution_options(synchronize_session=False))


async def insert_if_absent(session: AsyncSession, table: type[Base], values: dict[str, Any]) -> bool:
    """Insert a row unless one of its keys exists. Returns whether it was inserted."""
    return bool(
        affected_rows(await session.execute(dialect_insert(session, table).values(values).on_conflict_do_nothing()))
    )


def affected_rows(result: Any) -> int:
    """How many rows a statement changed."""
    return int(result.rowcount)
