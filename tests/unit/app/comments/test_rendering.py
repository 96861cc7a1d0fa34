"""How stored comments are rendered, on SQLite and on PostgreSQL."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import select, update

from app.accounts.cleanup import clean_up
from app.comments import markdown, queries, rendering
from app.comments.models import Comment
from tests.factories.comments import NEW, NOBODY, Commenters


async def test_the_output_of_an_earlier_renderer_is_rendered_again_when_it_is_read(people: Commenters) -> None:
    root = await people.write(people.ada, "**bold**")
    async with people.db.writing() as session:
        await session.execute(update(Comment).values(html="<p>old</p>", renderer_version=0))
    async with people.db.session() as session:
        threads, _ = await queries.list_threads(session, NOBODY, NEW.lesson, "")
    assert threads[0].root.html == "<p><strong>bold</strong></p>"
    assert root.id == threads[0].root.id


async def test_the_output_of_an_earlier_renderer_is_stored_again_step_by_step(
    people: Commenters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendering, "_BATCH_SIZE", 2)
    kept = [await people.write(people.ada, f"**{number}**") for number in range(5)]
    async with people.db.writing() as session:
        await session.execute(
            update(Comment).values(html="<p>old</p>", renderer_version=0).where(Comment.id != kept[0].id)
        )

    await clean_up(people.db, [rendering.rerender_outdated])

    async with people.db.session() as session:
        stored = (await session.execute(select(Comment.html, Comment.renderer_version).order_by(Comment.id))).all()
    assert stored == [(f"<p><strong>{number}</strong></p>", markdown.RENDERER_VERSION) for number in range(5)]


async def test_who_edits_meanwhile_is_neither_waited_for_nor_overwritten(
    people: Commenters, monkeypatch: pytest.MonkeyPatch
) -> None:
    if people.db.engine.dialect.name != "postgresql":
        pytest.skip("SQLite has one writer at a time")
    one = await people.write(people.ada, "one")
    async with people.db.writing() as session:
        await session.execute(update(Comment).values(renderer_version=0))
    async with people.db.writing() as editing:
        await editing.execute(update(Comment).where(Comment.id == one.id).values(html="<p>edited</p>"))
        await asyncio.create_task(
            clean_up(people.db, [rendering.rerender_outdated])
        )  # as it runs beside the editor's request

    async with people.db.session() as session:
        assert await session.scalar(select(Comment.html)) == "<p>edited</p>"
