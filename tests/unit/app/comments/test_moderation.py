"""Reports of comments, and what instructors do with them, on SQLite and on PostgreSQL."""

from __future__ import annotations

import pytest

from app.comments import listing, moderation, writing
from app.comments.errors import CommentUnknown, ReportedTooOften, WriteFirst
from app.comments.models import State
from app.comments.sight import Viewer
from tests.factories.comments import NEW, NOBODY, People, made


async def test_a_report_reaches_the_queue_until_it_is_settled(people: People) -> None:
    root = await people.write(people.ada)
    for reason in ("It is rude", "It is very rude"):
        async with people.db.writing() as session:
            await moderation.report(session, people.bob, root.id, reason)
    async with people.db.writing() as session:
        queued = await listing.queue(session, listing.Kind.reported)
        assert [comment.reports for comment in queued.comments] == [1]
        assert await listing.reports(session, queued.comments) == {root.id: ["It is very rude"]}
        await moderation.dismiss(session, people.teacher, root.id)
    async with people.db.session() as session:
        assert (await listing.queue(session, listing.Kind.reported)).comments == []
        with pytest.raises(WriteFirst):
            await moderation.report(session, people.bob, root.id, "  ")


async def test_who_reports_everything_is_asked_to_wait(people: People) -> None:
    async with people.db.writing() as session:
        session.add_all(made(people.ada, number) for number in range(1, moderation.MOST_REPORTS + 2))
        await session.flush()
        for number in range(1, moderation.MOST_REPORTS + 1):
            await moderation.report(session, people.bob, f"{number:04}", "I do not like it")
        with pytest.raises(ReportedTooOften):
            await moderation.report(session, people.bob, f"{moderation.MOST_REPORTS + 1:04}", "Nor this")


async def test_what_is_hidden_is_out_of_sight_and_comes_back(people: People) -> None:
    root = await people.write(people.ada)
    async with people.db.writing() as session:
        hidden = await moderation.hide(session, people.teacher, root.id, "An advertisement")
    assert (hidden.state, hidden.reason, await people.count()) == (State.hidden, "An advertisement", 0)
    async with people.db.session() as session:
        for viewer, seen in ((NOBODY, 0), (Viewer.of(people.bob), 0), (Viewer.of(people.ada), 1)):
            assert len((await listing.threads(session, viewer, NEW.lesson, ""))[0]) == seen
    for _ in range(2):
        async with people.db.writing() as session:
            shown = await moderation.show(session, people.teacher, root.id)
    assert (shown.state, shown.reason, await people.count()) == (State.shown, "", 1)


async def test_pinned_threads_stand_on_top_and_only_on_the_first_page(people: People) -> None:
    first, second = await people.write(people.ada, "First"), await people.write(people.ada, "Second")
    async with people.db.writing() as session:
        await moderation.pin(session, people.teacher, first.id, on=True)
    async with people.db.session() as session:
        threads, before = await listing.threads(session, NOBODY, NEW.lesson, "")
        further, _ = await listing.threads(session, NOBODY, NEW.lesson, "", before=second.id)

    assert ([thread.root.id for thread in threads], before) == ([first.id, second.id], None)
    assert further == []


async def test_an_answer_is_one_of_the_replies(people: People) -> None:
    root = await people.write(people.ada)
    reply = await people.write(people.bob, "Yes", root)
    async with people.db.writing() as session:
        await moderation.answer(session, people.teacher, reply.id, on=True)
        with pytest.raises(CommentUnknown):
            await moderation.answer(session, people.teacher, root.id, on=True)
    assert (await people.read(root)).answer_id == reply.id
    async with people.db.writing() as session:
        await writing.remove(session, people.bob, reply.id)
    assert (await people.read(root)).answer_id is None
