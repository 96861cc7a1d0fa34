"""What remains of an account's comments after it is deleted, on SQLite and on PostgreSQL."""

from __future__ import annotations

from sqlalchemy import delete, select

from app.accounts.models import Account
from app.comments import moderation, queries, reactions
from app.comments.models import CommentReaction, ReactionKind
from app.comments.personal_data import erase_comments, export_comments
from tests.factories.comments import NEW, NOBODY, Commenters


async def test_an_account_that_leaves_takes_its_reactions_and_leaves_its_comments(people: Commenters) -> None:
    root = await people.write(people.ada)
    await people.write(people.bob, "Yes", root)
    async with people.db.writing() as session:
        await reactions.set_reaction(session, people.bob, root.id, ReactionKind.thanks, on=True)
        await moderation.report_comment(session, people.bob, root.id, "Hm")
        mine = [row async for row in export_comments(session, people.bob)]
    async with people.db.writing() as session:
        await erase_comments(session, people.bob)
        await session.execute(delete(Account).where(Account.id == people.bob.id))

    left = await people.read(root)
    assert (left.thanks_count, left.report_count, left.reply_count) == (0, 0, 1)
    assert [row["kind"] for row in mine] == ["comment", "comment_reaction", "comment_report"]
    assert mine[0]["source"] == "Yes"
    async with people.db.session() as session:
        threads, _ = await queries.list_threads(session, NOBODY, NEW.lesson, "")
        assert [reply.author_id for reply in threads[0].replies] == [None]
        assert (await session.scalars(select(CommentReaction))).all() == []
