"""What remains of an account's comments after it is deleted, on SQLite and on PostgreSQL."""

from __future__ import annotations

from sqlalchemy import delete, select

from app.accounts.models import Account
from app.comments import editing, moderation, queries, reactions
from app.comments.models import CommentReaction, CommentState, CommentVersion, ReactionKind
from app.comments.personal_data import erase_comments, export_comments
from tests.factories.comments import NEW, NOBODY, Commenters


async def test_an_account_that_leaves_takes_its_reactions_and_leaves_its_comments(people: Commenters) -> None:
    root = await people.write(people.ada)
    reply = await people.write(people.bob, "Call me at 555-0199", root)
    async with people.db.writing() as session:
        await editing.edit_comment(session, people.bob, reply.id, "Yes", 0)
    async with people.db.writing() as session:
        await reactions.set_reaction(session, people.bob, root.id, ReactionKind.thanks, on=True)
        await moderation.report_comment(session, people.bob, root.id, "Hm")
        mine = [row async for row in export_comments(session, people.bob)]
    async with people.db.writing() as session:
        await erase_comments(session, people.bob)
        await session.execute(delete(Account).where(Account.id == people.bob.id))

    left = await people.read(root)
    assert (left.thanks_count, left.report_count, left.reply_count) == (0, 0, 1)
    assert [row["kind"] for row in mine] == ["comment", "comment_version", "comment_reaction", "comment_report"]
    assert mine[0]["source"] == "Yes"
    async with people.db.session() as session:
        threads, _ = await queries.list_threads(session, NOBODY, NEW.lesson, "")
        assert [reply.author_id for reply in threads[0].replies] == [None]
        assert [reply.source for reply in threads[0].replies] == ["Yes"]
        for table in (CommentReaction, CommentVersion):
            assert (await session.scalars(select(table))).all() == []
    assert (await people.read(reply)).edit_count == 0, "nothing leads to a history that is gone"


async def test_a_comment_that_nobody_approved_goes_with_its_author(people: Commenters) -> None:
    approved = await people.write(people.ada, "Mine")
    held = await people.write(people.bob, "Only for instructors so far", hold_first=1)
    async with people.db.writing() as session:
        await erase_comments(session, people.bob)
        await erase_comments(session, people.ada)

    gone, kept = await people.read(held), await people.read(approved)
    assert (gone.state, gone.source, gone.html) == (CommentState.deleted, "", "")
    assert (kept.state, kept.source, kept.author_id) == (CommentState.shown, "Mine", None)
    assert await people.count() == 1
