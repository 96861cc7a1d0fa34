"""What can be done with comments, on SQLite and on PostgreSQL."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest
from sqlalchemy import delete, select, update

from app.accounts.models import Account, Role
from app.comments import listing, service
from app.comments.belongings import erase_comments, export_comments
from app.comments.errors import (
    ChangedMeanwhile,
    CommentUnknown,
    EditedTooOften,
    NotYourOwn,
    NotYours,
    ReportedTooOften,
    ThreadClosed,
    TooFast,
    WriteFirst,
)
from app.comments.models import Comment, CommentReaction, Reaction, State, Version
from app.comments.service import Draft, Told, Why
from app.comments.sight import Viewer
from app.db import Database, now
from tests.factories.accounts import an_account

NEW = Draft(lesson="small/first", cell="", thread_id=None, text="Hello", key="k1", language="en")
NOBODY = Viewer(None, False)


@dataclass
class People:
    """Who takes part, and a shorter way to speak."""

    db: Database
    ada: Account
    bob: Account
    teacher: Account

    async def write(self, author: Account, text: str = "Hello", thread: Comment | None = None, **more: int) -> Comment:
        draft = replace(NEW, text=text, key=f"{author.id}{text}", thread_id=thread.id if thread else None)
        async with self.db.writing() as session:
            return await service.write(session, author, draft, **more)

    async def read(self, comment: Comment) -> Comment:
        async with self.db.session() as session:
            return await session.get_one(Comment, comment.id)

    async def count(self) -> int:
        async with self.db.session() as session:
            return (await listing.counts(session, NEW.lesson)).get("", 0)


@pytest.fixture
async def people(database: Database) -> People:
    ada = await an_account(database, name="Ada Byron")
    bob = await an_account(database, name="Bob Moore")
    teacher = await an_account(database, Role.instructor, name="Tea Cher")
    long_ago = now() - timedelta(days=9)
    async with database.writing() as session:
        await session.execute(update(Account).values(created_at=long_ago))
    for account in (ada, bob, teacher):
        account.created_at = long_ago
    return People(database, ada, bob, teacher)


async def test_the_same_form_sent_twice_is_one_comment(people: People) -> None:
    first = await people.write(people.ada)
    again = await people.write(people.ada)

    assert first.id == again.id
    assert await people.count() == 1


async def test_the_same_form_sent_by_fifty_at_once_is_one_comment(people: People) -> None:
    comments = await asyncio.gather(*(people.write(people.ada) for _ in range(50)))

    assert len({comment.id for comment in comments}) == 1
    assert await people.count() == 1


async def test_the_same_words_from_a_form_that_was_shown_anew_are_one_comment(people: People) -> None:
    first = await people.write(people.ada)
    async with people.db.writing() as session:
        again = await service.write(session, people.ada, replace(NEW, key="another"))
        elsewhere = await service.write(session, people.ada, replace(NEW, key="another", cell="cell"))
        answer = await service.write(session, people.ada, replace(NEW, key="another", thread_id=first.id))
        await session.execute(update(Comment).values(created_at=now() - timedelta(hours=1)))
    async with people.db.writing() as session:
        later = await service.write(session, people.ada, replace(NEW, key="yet another"))

    assert first.id == again.id
    assert len({first.id, elsewhere.id, answer.id, later.id}) == 4


async def test_another_text_from_the_same_form_is_another_comment(people: People) -> None:
    async with people.db.writing() as session:
        first = await service.write(session, people.ada, NEW)
        other = await service.write(session, people.ada, replace(NEW, text="Something else"))
        others = await service.write(session, people.bob, NEW)

    assert len({first.id, other.id, others.id}) == 3


async def test_replies_are_counted_with_their_thread_and_their_place(people: People) -> None:
    root = await people.write(people.ada)
    reply = await people.write(people.bob, "Yes", root)
    assert ((await people.read(root)).replies, await people.count()) == (1, 2)

    async with people.db.writing() as session:
        await service.remove(session, people.bob, reply.id)
    assert ((await people.read(root)).replies, await people.count()) == (0, 1)


async def test_a_reply_belongs_where_its_thread_is(people: People) -> None:
    root = await people.write(people.ada)
    draft = replace(NEW, lesson="other/lesson", cell="elsewhere", thread_id=root.id)
    async with people.db.writing() as session:
        reply = await service.write(session, people.bob, draft)
        assert (reply.lesson, reply.cell) == (root.lesson, root.cell)
        with pytest.raises(ThreadClosed):
            await service.write(session, people.bob, replace(NEW, thread_id=reply.id, text="deeper"))
        with pytest.raises(CommentUnknown):
            await service.write(session, people.bob, replace(NEW, thread_id="nothing", text="deeper"))


async def test_what_is_deleted_leaves_a_stub_where_others_have_answered(people: People) -> None:
    root = await people.write(people.ada, "My secret")
    await people.write(people.bob, "Yes", root)
    async with people.db.writing() as session:
        await service.change(session, people.ada, root.id, "My other secret", 0)
        await service.remove(session, people.ada, root.id)

    left = await people.read(root)
    assert (left.state, left.source, left.html) == (State.deleted, "", "")
    async with people.db.session() as session:
        assert (await session.scalars(select(Version))).all() == []
        threads, _ = await listing.threads(session, NOBODY, NEW.lesson, "")
        assert [thread.root.id for thread in threads] == [root.id]
        with pytest.raises(ThreadClosed):
            await service.write(session, people.bob, replace(NEW, thread_id=root.id, text="late"))


async def test_what_is_deleted_without_an_answer_is_gone(people: People) -> None:
    root = await people.write(people.ada)
    async with people.db.writing() as session:
        await service.remove(session, people.ada, root.id)
    async with people.db.session() as session:
        assert (await listing.threads(session, Viewer.of(people.teacher), NEW.lesson, ""))[0] == []
        with pytest.raises(CommentUnknown):
            await service.get(session, NOBODY, root.id)


async def test_nobody_changes_what_others_wrote(people: People) -> None:
    root = await people.write(people.ada)
    for other in (people.bob, people.teacher):
        async with people.db.session() as session:
            with pytest.raises(NotYours):
                await service.change(session, other, root.id, "Not mine", 0)
            with pytest.raises(NotYours):
                await service.remove(session, other, root.id)


async def test_an_edit_keeps_what_was_said_before(people: People) -> None:
    root = await people.write(people.ada, "One")
    for edits, text in enumerate(("Two", "Three")):
        async with people.db.writing() as session:
            changed = await service.change(session, people.ada, root.id, text, edits)

    assert (changed.source, changed.html, changed.edits) == ("Three", "<p>Three</p>", 2)
    assert changed.edited_at is not None
    async with people.db.session() as session:
        assert [version.source for version in await listing.versions(session, changed)] == ["Two", "One"]


async def test_an_edit_of_what_another_tab_has_changed_is_not_taken_in_silence(people: People) -> None:
    root = await people.write(people.ada, "One")
    async with people.db.writing() as session:
        await service.change(session, people.ada, root.id, "Two", 0)
    async with people.db.session() as session:
        with pytest.raises(ChangedMeanwhile):
            await service.change(session, people.ada, root.id, "Three", 0)
        same = await service.change(session, people.ada, root.id, "Two", 0)
    assert same.edits == 1, "sent twice is sent once"


async def test_a_comment_can_be_changed_only_so_often(people: People) -> None:
    root = await people.write(people.ada)
    async with people.db.writing() as session:
        await session.execute(update(Comment).values(edits=service.MOST_EDITS))
    async with people.db.session() as session:
        with pytest.raises(EditedTooOften):
            await service.change(session, people.ada, root.id, "Once more", service.MOST_EDITS)


async def test_who_writes_too_fast_is_told_how_long_to_wait(people: People) -> None:
    for n in range(6):
        await people.write(people.ada, f"Number {n}")
    with pytest.raises(TooFast, match=r"1 minute|seconds"):
        await people.write(people.ada, "One more")
    assert await people.write(people.ada, "Number 5"), "what is there already is found all the same"
    assert await people.write(people.bob, "I am somebody else")


async def test_a_reaction_counts_once_whatever_is_pressed(people: People) -> None:
    root = await people.write(people.ada)

    async def press(account: Account, on: bool) -> None:
        async with people.db.writing() as session:
            await service.react(session, account, root.id, Reaction.helpful, on=on)

    await asyncio.gather(*(press(account, True) for account in (people.bob, people.teacher) for _ in range(5)))
    assert (await people.read(root)).helpful == 2
    await asyncio.gather(*(press(people.bob, False) for _ in range(5)))
    assert (await people.read(root)).helpful == 1


async def test_nobody_reacts_to_or_reports_what_is_their_own(people: People) -> None:
    root = await people.write(people.ada)
    async with people.db.session() as session:
        with pytest.raises(NotYourOwn):
            await service.react(session, people.ada, root.id, Reaction.helpful, on=True)
        with pytest.raises(NotYourOwn):
            await service.report(session, people.ada, root.id, "It is mine")


async def test_a_report_reaches_the_queue_until_it_is_settled(people: People) -> None:
    root = await people.write(people.ada)
    for reason in ("It is rude", "It is very rude"):
        async with people.db.writing() as session:
            await service.report(session, people.bob, root.id, reason)
    async with people.db.writing() as session:
        queued = await listing.queue(session, listing.Kind.reported)
        assert [comment.reports for comment in queued.comments] == [1]
        assert await listing.reports(session, queued.comments) == {root.id: ["It is very rude"]}
        await service.dismiss(session, people.teacher, root.id)
    async with people.db.session() as session:
        assert (await listing.queue(session, listing.Kind.reported)).comments == []
        with pytest.raises(WriteFirst):
            await service.report(session, people.bob, root.id, "  ")


async def test_who_reports_everything_is_asked_to_wait(people: People) -> None:
    async with people.db.writing() as session:
        session.add_all(_made(people.ada, number) for number in range(1, service.MOST_REPORTS + 2))
        await session.flush()
        for number in range(1, service.MOST_REPORTS + 1):
            await service.report(session, people.bob, f"{number:04}", "I do not like it")
        with pytest.raises(ReportedTooOften):
            await service.report(session, people.bob, f"{service.MOST_REPORTS + 1:04}", "Nor this")


async def test_counters_hold_whatever_happens_at_once(people: People) -> None:
    root = await people.write(people.ada)
    replies = [await people.write(people.bob, f"Reply {n}", root) for n in range(5)]

    async def hide(comment: Comment, *, on: bool) -> None:
        async with people.db.writing() as session:
            verb = service.hide(session, people.teacher, comment.id, "A test") if on else None
            await (verb or service.show(session, people.teacher, comment.id))

    async def leave() -> None:
        async with people.db.writing() as session:
            await service.remove(session, people.ada, root.id)

    at_once = [hide(reply, on=True) for reply in replies for _ in range(3)]
    written = [people.write(people.teacher, f"And {n}", root) for n in range(4)]
    ended = await asyncio.gather(*at_once, *written, leave(), return_exceptions=True)
    assert {type(fault) for fault in ended if isinstance(fault, BaseException)} <= {ThreadClosed}
    await asyncio.gather(*(hide(reply, on=False) for reply in replies[:2] for _ in range(3)))

    async with people.db.session() as session:
        shown = (await session.scalars(select(Comment).where(Comment.state == State.shown))).all()
    assert (await people.read(root)).replies == len(shown)
    assert await people.count() == len(shown)


async def test_what_is_hidden_is_out_of_sight_and_comes_back(people: People) -> None:
    root = await people.write(people.ada)
    async with people.db.writing() as session:
        hidden = await service.hide(session, people.teacher, root.id, "An advertisement")
    assert (hidden.state, hidden.reason, await people.count()) == (State.hidden, "An advertisement", 0)
    async with people.db.session() as session:
        for viewer, seen in ((NOBODY, 0), (Viewer.of(people.bob), 0), (Viewer.of(people.ada), 1)):
            assert len((await listing.threads(session, viewer, NEW.lesson, ""))[0]) == seen
    for _ in range(2):
        async with people.db.writing() as session:
            shown = await service.show(session, people.teacher, root.id)
    assert (shown.state, shown.reason, await people.count()) == (State.shown, "", 1)


async def test_first_comments_wait_where_the_operator_wants_it(people: People) -> None:
    first = await people.write(people.ada, "One", hold_first=1)
    assert (first.state, await people.count()) == (State.held, 0)
    assert (await people.write(people.teacher, "Two", hold_first=1)).state == State.shown
    async with people.db.writing() as session:
        assert [c.id for c in (await listing.queue(session, listing.Kind.held)).comments] == [first.id]
        await service.show(session, people.teacher, first.id)
    assert (await people.write(people.ada, "Three", hold_first=1)).state == State.shown
    assert await people.count() == 3


async def test_who_is_told_of_a_comment(people: People) -> None:
    root = await people.write(people.ada)
    await people.write(people.bob, "Yes", root)
    reply = await people.write(people.teacher, f"@{people.bob.handle} @nobody-here @{people.teacher.handle} look", root)
    async with people.db.session() as session:
        told = await service.told_of(session, reply)
        of_root = await service.told_of(session, root)

    assert set(told) == {Told(people.bob.id, Why.mention), Told(people.ada.id, Why.reply)}
    assert of_root == []


async def test_pinned_threads_stand_on_top_and_only_on_the_first_page(people: People) -> None:
    first, second = await people.write(people.ada, "First"), await people.write(people.ada, "Second")
    async with people.db.writing() as session:
        await service.pin(session, people.teacher, first.id, on=True)
    async with people.db.session() as session:
        threads, before = await listing.threads(session, NOBODY, NEW.lesson, "")
        further, _ = await listing.threads(session, NOBODY, NEW.lesson, "", before=second.id)

    assert ([thread.root.id for thread in threads], before) == ([first.id, second.id], None)
    assert further == []


async def test_an_answer_is_one_of_the_replies(people: People) -> None:
    root = await people.write(people.ada)
    reply = await people.write(people.bob, "Yes", root)
    async with people.db.writing() as session:
        await service.answer(session, people.teacher, reply.id, on=True)
        with pytest.raises(CommentUnknown):
            await service.answer(session, people.teacher, root.id, on=True)
    assert (await people.read(root)).answer_id == reply.id
    async with people.db.writing() as session:
        await service.remove(session, people.bob, reply.id)
    assert (await people.read(root)).answer_id is None


async def test_pages_follow_each_other_without_gap_or_repetition(people: People) -> None:
    async with people.db.writing() as session:
        session.add_all(_made(people.ada, n) for n in range(listing.THREADS * 2 + 5))
    seen: list[str] = []
    before: str | None = None
    async with people.db.session() as session:
        for _ in range(3):
            threads, before = await listing.threads(session, NOBODY, NEW.lesson, "", before)
            seen += [thread.root.id for thread in threads]

    assert before is None
    assert seen == [f"{n:04}" for n in reversed(range(listing.THREADS * 2 + 5))]


async def test_a_long_thread_is_shown_around_the_reply_that_was_asked_for(people: People) -> None:
    async with people.db.writing() as session:
        root = _made(people.ada, 0)
        session.add(root)
        await session.flush()
        session.add_all(_made(people.bob, n, root.id) for n in range(1, 121))
    async with people.db.session() as session:
        listed, _ = await listing.threads(session, NOBODY, NEW.lesson, "")
        begun = await listing.thread(session, NOBODY, root)
        amid = await listing.thread(session, NOBODY, await session.get_one(Comment, "0100"))
        last = await listing.thread(session, NOBODY, root, begun.after)

    assert [reply.id for reply in listed[0].replies] == ["0001", "0002", "0003", "0004"]
    assert (listed[0].after, begun.earlier, begun.after, len(begun.replies)) == ("0004", False, "0050", 50)
    assert (amid.earlier, amid.after, "0100" in [reply.id for reply in amid.replies]) == (True, None, True)
    assert [reply.id for reply in last.replies][:1] == ["0051"]


async def test_an_account_that_leaves_takes_its_reactions_and_leaves_its_comments(people: People) -> None:
    root = await people.write(people.ada)
    await people.write(people.bob, "Yes", root)
    async with people.db.writing() as session:
        await service.react(session, people.bob, root.id, Reaction.thanks, on=True)
        await service.report(session, people.bob, root.id, "Hm")
        mine = [row async for row in export_comments(session, people.bob)]
    async with people.db.writing() as session:
        await erase_comments(session, people.bob)
        await session.execute(delete(Account).where(Account.id == people.bob.id))

    left = await people.read(root)
    assert (left.thanks, left.reports, left.replies) == (0, 0, 1)
    assert [row["kind"] for row in mine] == ["comment", "reaction", "report"]
    assert mine[0]["source"] == "Yes"
    async with people.db.session() as session:
        threads, _ = await listing.threads(session, NOBODY, NEW.lesson, "")
        assert [reply.author_id for reply in threads[0].replies] == [None]
        assert (await session.scalars(select(CommentReaction))).all() == []


async def test_what_an_earlier_renderer_made_is_made_anew_when_it_is_read(people: People) -> None:
    root = await people.write(people.ada, "**bold**")
    async with people.db.writing() as session:
        await session.execute(update(Comment).values(html="<p>old</p>", renderer=0))
    async with people.db.session() as session:
        threads, _ = await listing.threads(session, NOBODY, NEW.lesson, "")
    assert threads[0].root.html == "<p><strong>bold</strong></p>"
    assert root.id == threads[0].root.id


async def test_people_are_suggested_who_wrote_there(people: People) -> None:
    root = await people.write(people.ada)
    await people.write(people.bob, "Yes", root)
    async with people.db.session() as session:
        at_place = await listing.handles_at(session, NEW.lesson, "", None, "")
        in_thread = await listing.handles_at(session, NEW.lesson, "", root.id, "")
        beginning = await listing.handles_at(session, NEW.lesson, "", root.id, people.bob.handle[:2])
        nothing = await listing.handles_at(session, NEW.lesson, "", root.id, "%")

    assert at_place == [(people.ada.handle, "Ada Byron")]
    assert {handle for handle, _ in in_thread} == {people.ada.handle, people.bob.handle}
    assert beginning == [(people.bob.handle, "Bob Moore")]
    assert nothing == []


def _made(author: Account, number: int, thread_id: str | None = None) -> Comment:
    return Comment(
        id=f"{number:04}",
        lesson=NEW.lesson,
        cell="",
        thread_id=thread_id,
        author_id=author.id,
        key=str(number),
        source="x",
        html="<p>x</p>",
        renderer=1,
        language="en",
        created_at=now(),
        replies=120 if not number else 0,
    )
