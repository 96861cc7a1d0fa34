"""Writing, editing and deleting comments, on SQLite and on PostgreSQL."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select, update

from app.accounts.models import Account
from app.comments import editing, moderation, queries
from app.comments.errors import (
    CommentNotFound,
    CommentRateLimited,
    EditConflict,
    EditLimitReached,
    NotCommentAuthor,
    ThreadClosed,
)
from app.comments.models import Comment, CommentState, CommentVersion
from app.comments.permissions import Viewer
from app.db import now
from app.rate_limit import RateLimitPolicy, TooManyAttempts
from tests.factories.comments import NEW, NOBODY, Commenters


async def test_the_same_form_sent_twice_is_one_comment(people: Commenters) -> None:
    first = await people.write(people.ada)
    again = await people.write(people.ada)

    assert first.id == again.id
    assert await people.count() == 1


async def test_the_same_form_sent_by_fifty_at_once_is_one_comment(people: Commenters) -> None:
    comments = await asyncio.gather(*(people.write(people.ada) for _ in range(50)))

    assert len({comment.id for comment in comments}) == 1
    assert await people.count() == 1


async def test_the_same_text_from_a_form_that_was_shown_again_is_one_comment(people: Commenters) -> None:
    first = await people.write(people.ada)
    async with people.db.writing() as session:
        again = await editing.create_comment(session, people.ada, replace(NEW, key="another"))
        elsewhere = await editing.create_comment(session, people.ada, replace(NEW, key="another", cell="cell"))
        answer = await editing.create_comment(session, people.ada, replace(NEW, key="another", thread_id=first.id))
        await session.execute(update(Comment).values(created_at=now() - timedelta(hours=1)))
    async with people.db.writing() as session:
        later = await editing.create_comment(session, people.ada, replace(NEW, key="yet another"))

    assert first.id == again.id
    assert len({first.id, elsewhere.id, answer.id, later.id}) == 4


async def test_another_text_from_the_same_form_is_another_comment(people: Commenters) -> None:
    async with people.db.writing() as session:
        first = await editing.create_comment(session, people.ada, NEW)
        other = await editing.create_comment(session, people.ada, replace(NEW, text="Something else"))
        others = await editing.create_comment(session, people.bob, NEW)

    assert len({first.id, other.id, others.id}) == 3


async def test_what_was_taken_back_can_be_said_again_with_the_same_form(people: Commenters) -> None:
    first = await people.write(people.ada)
    async with people.db.writing() as session:
        await editing.delete_comment(session, people.ada, first.id)
    second = await people.write(people.ada)
    assert (second.id != first.id, second.state, await people.count()) == (True, CommentState.shown, 1)
    assert (await people.write(people.ada)).id == second.id


async def test_replies_are_counted_with_their_thread_and_their_place(people: Commenters) -> None:
    root = await people.write(people.ada)
    reply = await people.write(people.bob, "Yes", root)
    assert ((await people.read(root)).reply_count, await people.count()) == (1, 2)

    async with people.db.writing() as session:
        await editing.delete_comment(session, people.bob, reply.id)
    assert ((await people.read(root)).reply_count, await people.count()) == (0, 1)


async def test_a_reply_belongs_where_its_thread_is(people: Commenters) -> None:
    root = await people.write(people.ada)
    draft = replace(NEW, lesson="other/lesson", cell="elsewhere", thread_id=root.id)
    async with people.db.writing() as session:
        reply = await editing.create_comment(session, people.bob, draft)
        assert (reply.lesson, reply.cell) == (root.lesson, root.cell)
        with pytest.raises(ThreadClosed):
            await editing.create_comment(session, people.bob, replace(NEW, thread_id=reply.id, text="deeper"))
        with pytest.raises(CommentNotFound):
            await editing.create_comment(session, people.bob, replace(NEW, thread_id="nothing", text="deeper"))


async def test_what_is_deleted_leaves_a_stub_where_others_have_answered(people: Commenters) -> None:
    root = await people.write(people.ada, "My secret")
    await people.write(people.bob, "Yes", root)
    async with people.db.writing() as session:
        await editing.edit_comment(session, people.ada, root.id, "My other secret", 0)
        await editing.delete_comment(session, people.ada, root.id)

    left = await people.read(root)
    assert (left.state, left.source, left.html) == (CommentState.deleted, "", "")
    async with people.db.session() as session:
        assert (await session.scalars(select(CommentVersion))).all() == []
        threads, _ = await queries.list_threads(session, NOBODY, NEW.lesson, "")
        assert [thread.root.id for thread in threads] == [root.id]
        with pytest.raises(ThreadClosed):
            await editing.create_comment(session, people.bob, replace(NEW, thread_id=root.id, text="late"))


async def test_what_is_deleted_without_an_answer_is_gone(people: Commenters) -> None:
    root = await people.write(people.ada)
    async with people.db.writing() as session:
        await editing.delete_comment(session, people.ada, root.id)
    async with people.db.session() as session:
        assert (await queries.list_threads(session, Viewer.of(people.teacher), NEW.lesson, ""))[0] == []
        with pytest.raises(CommentNotFound):
            await queries.get_comment(session, NOBODY, root.id)


async def test_nobody_changes_what_others_wrote(people: Commenters) -> None:
    root = await people.write(people.ada)
    for other in (people.bob, people.teacher):
        async with people.db.session() as session:
            with pytest.raises(NotCommentAuthor):
                await editing.edit_comment(session, other, root.id, "Not mine", 0)
            with pytest.raises(NotCommentAuthor):
                await editing.delete_comment(session, other, root.id)


async def test_an_edit_keeps_what_was_said_before(people: Commenters) -> None:
    root = await people.write(people.ada, "One")
    for edits, text in enumerate(("Two", "Three")):
        async with people.db.writing() as session:
            changed = await editing.edit_comment(session, people.ada, root.id, text, edits)

    assert (changed.source, changed.html, changed.edit_count) == ("Three", "<p>Three</p>", 2)
    assert changed.edited_at is not None
    async with people.db.session() as session:
        assert [version.source for version in await queries.list_versions(session, changed)] == ["Two", "One"]


async def test_an_edit_of_what_another_tab_has_changed_is_not_taken_in_silence(people: Commenters) -> None:
    root = await people.write(people.ada, "One")
    async with people.db.writing() as session:
        await editing.edit_comment(session, people.ada, root.id, "Two", 0)
    async with people.db.session() as session:
        with pytest.raises(EditConflict):
            await editing.edit_comment(session, people.ada, root.id, "Three", 0)
        same = await editing.edit_comment(session, people.ada, root.id, "Two", 0)
    assert same.edit_count == 1, "sent twice is sent once"


async def test_a_comment_can_be_changed_only_so_often(people: Commenters) -> None:
    root = await people.write(people.ada)
    async with people.db.writing() as session:
        await session.execute(update(Comment).values(edit_count=editing.MAX_EDITS))
    async with people.db.session() as session:
        with pytest.raises(EditLimitReached):
            await editing.edit_comment(session, people.ada, root.id, "Once more", editing.MAX_EDITS)


async def test_edits_of_all_comments_together_are_limited(people: Commenters, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(editing, "EDITS_PER_AUTHOR", RateLimitPolicy(free_attempts=2))
    first, second = await people.write(people.ada, "One"), await people.write(people.ada, "Two")
    others = await people.write(people.bob, "Three")

    async def edit(author: Account, comment: Comment, edits: int = 0) -> None:
        async with people.db.writing() as session:
            await editing.edit_comment(session, author, comment.id, f"{comment.id} {edits}", edits)

    await edit(people.ada, first)
    await edit(people.ada, second)
    with pytest.raises(TooManyAttempts):
        await edit(people.ada, first, 1)
    await edit(people.bob, others)


async def test_who_writes_too_fast_is_told_how_long_to_wait(people: Commenters) -> None:
    for n in range(6):
        await people.write(people.ada, f"Number {n}")
    with pytest.raises(CommentRateLimited, match=r"1 minute|seconds"):
        await people.write(people.ada, "One more")
    assert await people.write(people.ada, "Number 5"), "what is there already is found all the same"
    assert await people.write(people.bob, "I am somebody else")


async def test_first_comments_wait_where_the_operator_wants_it(people: Commenters) -> None:
    first = await people.write(people.ada, "One", hold_first=1)
    assert (first.state, await people.count()) == (CommentState.held, 0)
    assert (await people.write(people.teacher, "Two", hold_first=1)).state == CommentState.shown
    async with people.db.writing() as session:
        assert [
            c.id for c in (await queries.list_moderation_queue(session, queries.ModerationQueue.held)).comments
        ] == [first.id]
        await moderation.approve_comment(session, people.teacher, first.id)
    assert (await people.write(people.ada, "Three", hold_first=1)).state == CommentState.shown
    assert await people.count() == 3
