"""Reports about comments, and what instructors do with them, on SQLite and on PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
from sqlalchemy.ext.asyncio import AsyncSession

from app.comments import editing, moderation, queries
from app.comments.errors import CommentNotFound, ReasonRequired, ReportLimitReached
from app.comments.models import Comment, CommentState
from app.comments.permissions import Viewer
from tests.factories.comments import NEW, NOBODY, Commenters, make_comment

Act = Callable[[AsyncSession], Awaitable[Comment]]


async def test_a_report_reaches_the_queue_until_it_is_settled(people: Commenters) -> None:
    root = await people.write(people.ada)
    for reason in ("It is rude", "It is very rude"):
        async with people.db.writing() as session:
            await moderation.report_comment(session, people.bob, root.id, reason)
    async with people.db.writing() as session:
        queued = await queries.list_moderation_queue(session, queries.ModerationQueue.reported)
        assert [comment.report_count for comment in queued.comments] == [1]
        assert await queries.get_open_report_reasons(session, queued.comments) == {root.id: ["It is very rude"]}
        await moderation.dismiss_reports(session, people.teacher, root.id)
    async with people.db.session() as session:
        assert (await queries.list_moderation_queue(session, queries.ModerationQueue.reported)).comments == []
        with pytest.raises(ReasonRequired):
            await moderation.report_comment(session, people.bob, root.id, "  ")


async def test_who_reports_everything_is_asked_to_wait(people: Commenters) -> None:
    async with people.db.writing() as session:
        session.add_all(make_comment(people.ada, number) for number in range(1, moderation.MAX_REPORTS_PER_DAY + 2))
        await session.flush()
        for number in range(1, moderation.MAX_REPORTS_PER_DAY + 1):
            await moderation.report_comment(session, people.bob, f"{number:04}", "I do not like it")
        with pytest.raises(ReportLimitReached):
            await moderation.report_comment(session, people.bob, f"{moderation.MAX_REPORTS_PER_DAY + 1:04}", "Nor this")


async def test_what_is_hidden_is_out_of_sight_and_comes_back(people: Commenters) -> None:
    root = await people.write(people.ada)
    async with people.db.writing() as session:
        hidden = await moderation.hide_comment(session, people.teacher, root.id, "An advertisement")
    assert (hidden.state, hidden.reason, await people.count()) == (CommentState.hidden, "An advertisement", 0)
    async with people.db.session() as session:
        for viewer, seen in ((NOBODY, 0), (Viewer.of(people.bob), 0), (Viewer.of(people.ada), 1)):
            assert len((await queries.list_threads(session, viewer, NEW.lesson, ""))[0]) == seen
    for _ in range(2):
        async with people.db.writing() as session:
            shown = await moderation.approve_comment(session, people.teacher, root.id)
    assert (shown.state, shown.reason, await people.count()) == (CommentState.shown, "", 1)


async def test_pinned_threads_are_at_the_top_of_the_first_page_only(people: Commenters) -> None:
    first, second = await people.write(people.ada, "First"), await people.write(people.ada, "Second")
    async with people.db.writing() as session:
        await moderation.set_pinned(session, people.teacher, first.id, on=True)
    async with people.db.session() as session:
        threads, before = await queries.list_threads(session, NOBODY, NEW.lesson, "")
        further, _ = await queries.list_threads(session, NOBODY, NEW.lesson, "", before=second.id)

    assert ([thread.root.id for thread in threads], before) == ([first.id, second.id], None)
    assert further == []


async def test_an_answer_is_one_of_the_replies(people: Commenters) -> None:
    root = await people.write(people.ada)
    reply = await people.write(people.bob, "Yes", root)
    async with people.db.writing() as session:
        await moderation.set_answer(session, people.teacher, reply.id, on=True)
        with pytest.raises(CommentNotFound):
            await moderation.set_answer(session, people.teacher, root.id, on=True)
    assert (await people.read(root)).answer_id == reply.id
    async with people.db.writing() as session:
        await editing.delete_comment(session, people.bob, reply.id)
    assert (await people.read(root)).answer_id is None


async def test_what_its_author_has_taken_back_stays_so_whatever_another_page_still_offers(people: Commenters) -> None:
    root = await people.write(people.ada)
    await people.write(people.bob, "Yes", root)
    async with people.db.writing() as session:
        await editing.delete_comment(session, people.ada, root.id)
    verbs: tuple[Act, ...] = (
        lambda session: moderation.hide_comment(session, people.teacher, root.id, "Too late"),
        lambda session: moderation.set_pinned(session, people.teacher, root.id, on=True),
        lambda session: moderation.report_comment(session, people.bob, root.id, "Too late"),
    )
    for verb in verbs:
        with pytest.raises(CommentNotFound):
            async with people.db.writing() as session:
                await verb(session)
    async with people.db.writing() as session:
        await moderation.approve_comment(session, people.teacher, root.id)
    left = await people.read(root)
    assert (left.state, left.pinned, left.report_count, await people.count()) == (CommentState.deleted, False, 0, 1)


@pytest.mark.parametrize("verb", ["pin", "report", "answer", "hide", "show"])
async def test_who_takes_a_comment_back_is_last_also_when_both_happen_at_once(people: Commenters, verb: str) -> None:
    root = await people.write(people.ada)
    reply = await people.write(people.ada, "Yes", root)
    async with people.db.writing() as session:
        await moderation.hide_comment(session, people.teacher, root.id, "For a while") if verb == "show" else None
    about = reply if verb == "answer" else root
    acts: dict[str, Act] = {
        "pin": lambda session: moderation.set_pinned(session, people.teacher, root.id, on=True),
        "report": lambda session: moderation.report_comment(session, people.bob, root.id, "Why not"),
        "answer": lambda session: moderation.set_answer(session, people.teacher, reply.id, on=True),
        "hide": lambda session: moderation.hide_comment(session, people.teacher, root.id, "Why not"),
        "show": lambda session: moderation.approve_comment(session, people.teacher, root.id),
    }

    async def act() -> None:
        with suppress(CommentNotFound):
            async with people.db.writing() as session:
                await queries.get_comment(session, Viewer.of(people.ada), about.id)  # as both pages have read it
                await asyncio.sleep(0.05)
                await acts[verb](session)

    async def take_back() -> None:
        async with people.db.writing() as session:
            await queries.get_comment(session, Viewer.of(people.ada), about.id)
            await asyncio.sleep(0.02)
            await editing.delete_comment(session, people.ada, about.id)

    await asyncio.gather(act(), take_back())
    left = await people.read(about)
    assert (left.state, left.pinned, left.report_count) == (CommentState.deleted, False, 0)
    assert (await people.read(root)).answer_id is None


async def test_what_is_hidden_answers_nothing(people: Commenters) -> None:
    root = await people.write(people.ada)
    reply = await people.write(people.bob, "Yes", root)
    async with people.db.writing() as session:
        await moderation.set_answer(session, people.teacher, reply.id, on=True)
        await moderation.hide_comment(session, people.teacher, reply.id, "It is wrong")
    assert (await people.read(root)).answer_id is None, "a link to it would lead nowhere"
