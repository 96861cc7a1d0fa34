"""The recipients of notifications about a comment, on SQLite and on PostgreSQL."""

from __future__ import annotations

import asyncio

from sqlalchemy import select

from app.accounts.models import Account
from app.comments import editing, moderation, recipients
from app.comments.errors import EditConflict
from app.comments.markdown import MAX_MENTIONS
from app.comments.models import Comment
from app.comments.recipients import Recipient, RecipientReason
from app.notifications.models import Notification
from tests.factories.accounts import store_account
from tests.factories.comments import Commenters


async def test_who_is_told_of_a_comment(people: Commenters) -> None:
    root = await people.write(people.ada)
    await people.write(people.bob, "Yes", root)
    reply = await people.write(people.teacher, f"@{people.bob.handle} @nobody-here @{people.teacher.handle} look", root)
    async with people.db.session() as session:
        told = await recipients.find_recipients(session, reply)
        of_root = await recipients.find_recipients(session, root)

    assert set(told) == {
        Recipient(people.bob.id, RecipientReason.mention),
        Recipient(people.ada.id, RecipientReason.reply),
    }
    assert of_root == []


async def _change(people: Commenters, author: Account, comment: Comment, text: str, edits: int) -> None:
    async with people.db.writing() as session:
        await editing.edit_comment(session, author, comment.id, text, edits)


async def _told(people: Commenters, comment: Comment) -> list[tuple[str, str]]:
    async with people.db.session() as session:
        told = select(Notification.account_id, Notification.kind).where(Notification.subject == comment.id)
        return sorted((row.account_id, row.kind) for row in await session.execute(told.order_by(Notification.id)))


async def test_whom_a_changed_comment_mentions_anew_is_told_once(people: Commenters) -> None:
    comment = await people.write(people.ada, f"@{people.bob.handle} look")
    assert await _told(people, comment) == [(people.bob.id, "mention")]

    both = f"@{people.bob.handle} @{people.teacher.handle} @{people.ada.handle} look"
    for edits, text in enumerate([both, "nobody", f"{both} again", f"@{people.teacher.handle}"]):
        await _change(people, people.ada, comment, text, edits)

    everyone = sorted([(people.bob.id, "mention"), (people.teacher.id, "mention")])
    assert await _told(people, comment) == everyone


async def test_who_was_told_of_a_reply_is_not_told_again_when_it_comes_to_mention_them(people: Commenters) -> None:
    root = await people.write(people.ada)
    reply = await people.write(people.bob, "Yes", root)

    await _change(people, people.bob, reply, f"Yes, @{people.ada.handle}", 0)

    assert await _told(people, reply) == [(people.ada.id, "reply")]


async def test_a_comment_changed_again_and_again_calls_no_more_people_than_one_could(people: Commenters) -> None:
    others = [await store_account(people.db) for _ in range(MAX_MENTIONS + 5)]
    comment = await people.write(people.ada, "Hello")

    for edits, other in enumerate(others):
        await _change(people, people.ada, comment, f"@{other.handle} look", edits)

    assert len(await _told(people, comment)) == MAX_MENTIONS


async def test_a_comment_that_is_out_of_sight_calls_nobody_when_it_is_changed(people: Commenters) -> None:
    comment = await people.write(people.ada, "Hello")
    async with people.db.writing() as session:
        await moderation.hide_comment(session, people.teacher, comment.id, "Not kind")

    await _change(people, people.ada, comment, f"@{people.bob.handle} look", 0)

    assert await _told(people, comment) == []


async def test_two_changes_at_once_tell_of_the_one_that_was_kept(people: Commenters) -> None:
    comment = await people.write(people.ada, "Hello")
    texts = [f"@{people.bob.handle} look", f"@{people.teacher.handle} look"]

    done = await asyncio.gather(
        *(_change(people, people.ada, comment, text, 0) for text in texts), return_exceptions=True
    )

    assert sum(isinstance(each, EditConflict) for each in done) == 1
    kept = people.bob if done[0] is None else people.teacher
    assert await _told(people, comment) == [(kept.id, "mention")]
