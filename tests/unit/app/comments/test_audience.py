"""Who is told of a comment, on SQLite and on PostgreSQL."""

from __future__ import annotations

from app.comments import audience
from app.comments.audience import Told, Why
from tests.factories.comments import People


async def test_who_is_told_of_a_comment(people: People) -> None:
    root = await people.write(people.ada)
    await people.write(people.bob, "Yes", root)
    reply = await people.write(people.teacher, f"@{people.bob.handle} @nobody-here @{people.teacher.handle} look", root)
    async with people.db.session() as session:
        told = await audience.told_of(session, reply)
        of_root = await audience.told_of(session, root)

    assert set(told) == {Told(people.bob.id, Why.mention), Told(people.ada.id, Why.reply)}
    assert of_root == []
