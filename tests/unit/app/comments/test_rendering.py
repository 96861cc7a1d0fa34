"""What comments look like once they are stored, on SQLite and on PostgreSQL."""

from __future__ import annotations

from sqlalchemy import update

from app.comments import listing
from app.comments.models import Comment
from tests.factories.comments import NEW, NOBODY, People


async def test_what_an_earlier_renderer_made_is_made_anew_when_it_is_read(people: People) -> None:
    root = await people.write(people.ada, "**bold**")
    async with people.db.writing() as session:
        await session.execute(update(Comment).values(html="<p>old</p>", renderer=0))
    async with people.db.session() as session:
        threads, _ = await listing.threads(session, NOBODY, NEW.lesson, "")
    assert threads[0].root.html == "<p><strong>bold</strong></p>"
    assert root.id == threads[0].root.id
