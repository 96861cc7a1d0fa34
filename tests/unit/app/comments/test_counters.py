"""Counters of comments, on SQLite and on PostgreSQL."""

from __future__ import annotations

import asyncio

from sqlalchemy import select

from app.comments import editing, moderation
from app.comments.errors import ThreadClosed
from app.comments.models import Comment, CommentState
from tests.factories.comments import Commenters


async def test_counters_hold_whatever_happens_at_once(people: Commenters) -> None:
    root = await people.write(people.ada)
    replies = [await people.write(people.bob, f"Reply {n}", root) for n in range(5)]

    async def hide(comment: Comment, *, on: bool) -> None:
        async with people.db.writing() as session:
            verb = moderation.hide_comment(session, people.teacher, comment.id, "A test") if on else None
            await (verb or moderation.approve_comment(session, people.teacher, comment.id))

    async def leave() -> None:
        async with people.db.writing() as session:
            await editing.delete_comment(session, people.ada, root.id)

    at_once = [hide(reply, on=True) for reply in replies for _ in range(3)]
    written = [people.write(people.teacher, f"And {n}", root) for n in range(4)]
    ended = await asyncio.gather(*at_once, *written, leave(), return_exceptions=True)
    assert {type(fault) for fault in ended if isinstance(fault, BaseException)} <= {ThreadClosed}
    await asyncio.gather(*(hide(reply, on=False) for reply in replies[:2] for _ in range(3)))

    async with people.db.session() as session:
        shown = (await session.scalars(select(Comment).where(Comment.state == CommentState.shown))).all()
    assert (await people.read(root)).reply_count == len(shown)
    assert await people.count() == len(shown)
