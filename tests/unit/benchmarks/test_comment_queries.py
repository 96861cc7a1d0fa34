"""The benchmark of comments fills a database as the application does, and asks what its routes ask."""

from __future__ import annotations

from pathlib import Path

from comment_queries import LESSON, Reader, fill
from sqlalchemy import func, select

from app.comments.models import Comment, CommentCounter
from app.db import Database


async def test_a_filled_database_answers_what_is_measured(tmp_path: Path) -> None:
    db = Database(f"sqlite+aiosqlite:///{tmp_path / 'comments.db'}")
    try:
        reader = Reader(db, await fill(db, 1_000))
        async with db.session() as session:
            assert (await session.get_one(CommentCounter, (LESSON, ""))).comment_count
            about = select(func.count()).where(Comment.lesson == LESSON)
            assert await session.scalar(about)
        await reader.prepare()
        for measured in (
            reader.first_page,
            reader.known_page,
            reader.far_page,
            reader.long_thread,
            reader.queue,
            reader.write,
        ):
            await measured()
        async with db.session() as session:
            assert await session.scalar(select(func.count()).select_from(Comment)) == 1_000
    finally:
        await db.close()
