"""Reports of comments, and what instructors do with them, on SQLite and on PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
from sqlalchemy.ext.asyncio import AsyncSession

from app.comments import listing, moderation, writing
from app.comments.errors import CommentUnknown, ReportedTooOften, WriteFirst
from app.comments.models import Comment, State
from app.comments.sight import Viewer
from tests.factories.comments import NEW, NOBODY, People, made

Act = Callable[[AsyncSession], Awaitable[Comment]]


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


async def test_what_its_author_has_taken_back_stays_so_whatever_another_page_still_offers(people: People) -> None:
    root = await people.write(people.ada)
    await people.write(people.bob, "Yes", root)
    async with people.db.writing() as session:
        await writing.remove(session, people.ada, root.id)
    verbs: tuple[Act, ...] = (
        lambda session: moderation.hide(session, people.teacher, root.id, "Too late"),
        lambda session: moderation.pin(session, people.teacher, root.id, on=True),
        lambda session: moderation.report(session, people.bob, root.id, "Too late"),
    )
    for verb in verbs:
        with pytest.raises(CommentUnknown):
            async with people.db.writing() as session:
                await verb(session)
    async with people.db.writing() as session:
        await moderation.show(session, people.teacher, root.id)
    left = await people.read(root)
    assert (left.state, left.pinned, left.reports, await people.count()) == (State.deleted, False, 0, 1)


@pytest.mark.parametrize("verb", ["pin", "report", "answer", "hide", "show"])
async def test_who_takes_a_comment_back_is_last_also_when_both_happen_at_once(people: People, verb: str) -> None:
    root = await people.write(people.ada)
    reply = await people.write(people.ada, "Yes", root)
    async with people.db.writing() as session:
        await moderation.hide(session, people.teacher, root.id, "For a while") if verb == "show" else None
    about = reply if verb == "answer" else root
    acts: dict[str, Act] = {
        "pin": lambda session: moderation.pin(session, people.teacher, root.id, on=True),
        "report": lambda session: moderation.report(session, people.bob, root.id, "Why not"),
        "answer": lambda session: moderation.answer(session, people.teacher, reply.id, on=True),
        "hide": lambda session: moderation.hide(session, people.teacher, root.id, "Why not"),
        "show": lambda session: moderation.show(session, people.teacher, root.id),
    }

    async def act() -> None:
        with suppress(CommentUnknown):
            async with people.db.writing() as session:
                await listing.get(session, Viewer.of(people.ada), about.id)  # as both pages have read it
                await asyncio.sleep(0.05)
                await acts[verb](session)

    async def take_back() -> None:
        async with people.db.writing() as session:
            await listing.get(session, Viewer.of(people.ada), about.id)
            await asyncio.sleep(0.02)
            await writing.remove(session, people.ada, about.id)

    await asyncio.gather(act(), take_back())
    left = await people.read(about)
    assert (left.state, left.pinned, left.reports) == (State.deleted, False, 0)
    assert (await people.read(root)).answer_id is None


async def test_what_is_hidden_answers_nothing(people: People) -> None:
    root = await people.write(people.ada)
    reply = await people.write(people.bob, "Yes", root)
    async with people.db.writing() as session:
        await moderation.answer(session, people.teacher, reply.id, on=True)
        await moderation.hide(session, people.teacher, reply.id, "It is wrong")
    assert (await people.read(root)).answer_id is None, "a link to it would lead nowhere"
