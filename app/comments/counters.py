"""Counters (the comments of a place, the replies of a thread, reactions, reports) change together with what they count.

Whoever moves several locks the place first: counters change one after the other there.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncSession

from app.comments.errors import CommentUnknown
from app.comments.models import Comment, Place, State
from app.db import Base, insert_into, one_at_a_time


async def move(session: AsyncSession, comment: Comment, to: State, **values: Any) -> None:
    """Give it another state, unless somebody else has meanwhile, and count.

    Raises:
        CommentUnknown: its author has taken it back, for good.
    """
    await refresh_alone(session, comment)
    was = comment.state
    if was == State.deleted:
        raise CommentUnknown
    still = update(Comment).where(Comment.id == comment.id, Comment.state == was)
    moved = await session.execute(still.values(state=to, **values).execution_options(synchronize_session=False))
    if rows(moved):
        await count(session, comment, (to == State.shown) - (was == State.shown))
    await session.refresh(comment)


async def alone_at(session: AsyncSession, lesson: str, cell: str) -> None:
    """Wait until nobody else changes the counters of this place: nobody waits for a row while holding the next."""
    await one_at_a_time(session, f"comments at {lesson}#{cell}")


async def refresh_alone(session: AsyncSession, comment: Comment) -> None:
    """The comment as it is now, and as it stays until the end of the transaction: its state changes nowhere else."""
    await alone_at(session, comment.lesson, comment.cell)
    await session.refresh(comment)


async def unanswer(session: AsyncSession, comment: Comment) -> None:
    """It answers its thread no longer, if it ever did."""
    if comment.thread_id is not None:
        answered = (Comment.id == comment.thread_id, Comment.answer_id == comment.id)
        no_more = update(Comment).where(*answered).values(answer_id=None)
        await session.execute(no_more)


async def count(session: AsyncSession, comment: Comment, change: int) -> None:
    """So many more comments are shown at its place and in its thread."""
    if not change:
        return
    place = {"lesson": comment.lesson, "cell": comment.cell}
    await add_once(session, Place, {**place, "shown": 0})
    counted = update(Place).filter_by(**place).values(shown=Place.shown + change)
    await session.execute(counted.execution_options(synchronize_session=False))
    if comment.thread_id is not None:
        await add(session, comment.thread_id, replies=change)


async def add(session: AsyncSession, comment_id: str, **changes: int) -> None:
    """Add so much to each of these counters of a comment."""
    values = {name: getattr(Comment, name) + change for name, change in changes.items()}
    one = update(Comment).where(Comment.id == comment_id).values(**values)
    await session.execute(one.execution_options(synchronize_session=False))


async def add_once(session: AsyncSession, table: type[Base], values: dict[str, Any]) -> bool:
    """Add a row unless one of its keys is taken: whether it was added."""
    return bool(rows(await session.execute(insert_into(session, table).values(values).on_conflict_do_nothing())))


def rows(result: Any) -> int:
    """How many rows a statement changed."""
    return int(result.rowcount)
