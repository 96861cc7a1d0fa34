"""Each list of comments uses one index, on SQLite and on PostgreSQL, however many other comments there are."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event, text

from app.comments import markdown, queries
from app.comments.list_facts import load_facts
from app.comments.models import Comment
from app.comments.permissions import Viewer
from app.db import Database, now
from tests.factories.accounts import store_account
from tests.factories.comments import NEW, NOBODY, Commenters, make_comment

TEACHER = Viewer("teacher", True)
_SPOILT = re.compile(r"SCAN (?!anon_)|USE TEMP B-TREE FOR ORDER BY|Seq Scan on comment|Sort Key: comments\.")


@pytest.fixture
async def crowd(database: Database) -> Database:
    """Several thousand comments in ten places; PostgreSQL has analyzed their distribution."""
    account = await store_account(database)
    begun = now() - timedelta(days=1)
    async with database.writing() as session:
        for lesson in range(10):
            roots = [_made(account.id, lesson, number, begun) for number in range(300)]
            session.add_all(roots)
            await session.flush()
            session.add_all(_made(account.id, lesson, 300 + number, begun, roots[0].id) for number in range(100))
            await session.flush()
    async with database.writing() as session:
        await session.execute(text("ANALYZE"))
    return database


def _made(author: str, lesson: int, number: int, begun: object, thread_id: str | None = None) -> Comment:
    return Comment(
        id=f"{number:06}{lesson:02}",
        lesson=f"c/{lesson}",
        cell="",
        thread_id=thread_id,
        author_id=author,
        idempotency_key=f"{lesson} {number}",
        source="x",
        html="<p>x</p>",
        renderer_version=1,
        language="en",
        created_at=begun,
        reply_count=100 if not number else 0,
        state="held" if number == 7 else "shown",
        report_count=1 if number == 8 else 0,
    )


async def test_no_list_reads_more_than_it_shows(crowd: Database) -> None:
    asked: list[tuple[str, Any]] = []

    def note(_connection: object, _cursor: object, statement: str, parameters: Any, *_: object) -> None:
        if statement.lstrip().startswith("SELECT"):
            asked.append((statement, parameters))

    engine = crowd.engine.sync_engine
    event.listen(engine, "before_cursor_execute", note)
    async with crowd.session() as session:
        for viewer in (NOBODY, TEACHER):
            threads, before = await queries.list_threads(session, viewer, "c/3", "")
            await queries.list_threads(session, viewer, "c/3", "", before)
            long = await queries.get_thread(session, viewer, next(one.root for one in threads))
            await queries.get_thread(session, viewer, long.root, "00035003")
        for kind in (
            queries.ModerationQueue.held,
            queries.ModerationQueue.reported,
        ):  # the newest are read from the table's own end
            await queries.list_moderation_queue(session, kind, "00020000")
        await queries.count_by_cell(session, "c/3")
        await queries.find_handles(session, "c/3", "", "00000003", "a")
    event.remove(engine, "before_cursor_execute", note)

    explain = "EXPLAIN QUERY PLAN " if engine.dialect.name == "sqlite" else "EXPLAIN "
    async with crowd.engine.connect() as connection:
        for statement, parameters in asked:
            if "comments" not in statement or "LIMIT" not in statement:
                continue
            rows = await connection.exec_driver_sql(explain + statement, parameters)
            plan = "\n".join(str(row[-1]) for row in rows)
            assert not _SPOILT.search(plan), f"{statement}\n{plan}"


async def test_the_facts_of_a_list_are_read_from_indexes(crowd: Database) -> None:
    asked: list[tuple[str, Any]] = []
    engine = crowd.engine.sync_engine

    def note(_connection: object, _cursor: object, statement: str, parameters: Any, *_: object) -> None:
        asked.append((statement, parameters))

    event.listen(engine, "before_cursor_execute", note)
    for viewer in (NOBODY, Viewer("learner", False), TEACHER):
        facts = await load_facts(crowd, viewer, "c/3", "")
        assert len(facts.comments) == queries.THREADS_PER_PAGE + 1
    event.remove(engine, "before_cursor_execute", note)

    assert len(asked) == 3
    explain = "EXPLAIN QUERY PLAN " if engine.dialect.name == "sqlite" else "EXPLAIN "
    async with crowd.engine.connect() as connection:
        for statement, parameters in asked:
            rows = await connection.exec_driver_sql(explain + statement, parameters)
            plan = "\n".join(str(row[-1]) for row in rows)
            assert not re.search(r"SCAN comment|USE TEMP B-TREE|Seq Scan on comments\b|Sort", plan), plan


async def test_a_search_reads_from_the_newest_comment_until_it_has_found_enough(crowd: Database) -> None:
    asked: list[tuple[str, Any]] = []
    engine = crowd.engine.sync_engine

    def note(_connection: object, _cursor: object, statement: str, parameters: Any, *_: object) -> None:
        asked.append((statement, parameters))

    event.listen(engine, "before_cursor_execute", note)
    async with crowd.session() as session:
        assert len(await queries.find_comments(session, ["x"], ["c/1"])) == 10
    event.remove(engine, "before_cursor_execute", note)

    sqlite = engine.dialect.name == "sqlite"
    statement, parameters = asked[-1]
    async with crowd.engine.connect() as connection:
        rows = await connection.exec_driver_sql(f"EXPLAIN {'QUERY PLAN ' * sqlite}{statement}", parameters)
        plan = "\n".join(str(row[-1]) for row in rows)
    from_the_end = "SEARCH comments USING INDEX sqlite_autoindex_comments_1 (id>?)" if sqlite else "Scan Backward"
    assert from_the_end in plan, plan
    assert "TEMP B-TREE" not in plan


async def test_pages_follow_each_other_without_gap_or_repetition(people: Commenters) -> None:
    async with people.db.writing() as session:
        session.add_all(make_comment(people.ada, n) for n in range(queries.THREADS_PER_PAGE * 2 + 5))
    seen: list[str] = []
    before: str | None = None
    async with people.db.session() as session:
        for _ in range(3):
            threads, before = await queries.list_threads(session, NOBODY, NEW.lesson, "", before)
            seen += [thread.root.id for thread in threads]

    assert before is None
    assert seen == [f"{n:04}" for n in reversed(range(queries.THREADS_PER_PAGE * 2 + 5))]


async def test_a_long_thread_is_shown_around_the_reply_that_was_asked_for(people: Commenters) -> None:
    async with people.db.writing() as session:
        root = make_comment(people.ada, 0)
        session.add(root)
        await session.flush()
        session.add_all(make_comment(people.bob, n, root.id) for n in range(1, 121))
    async with people.db.session() as session:
        listed, _ = await queries.list_threads(session, NOBODY, NEW.lesson, "")
        begun = await queries.get_thread(session, NOBODY, root)
        amid = await queries.get_thread(session, NOBODY, await session.get_one(Comment, "0100"))
        last = await queries.get_thread(session, NOBODY, root, begun.after)

    assert [reply.id for reply in listed[0].replies] == ["0001", "0002", "0003", "0004"]
    assert (listed[0].after, begun.earlier, begun.after, len(begun.replies)) == ("0004", False, "0050", 50)
    assert (amid.earlier, amid.after, "0100" in [reply.id for reply in amid.replies]) == (True, None, True)
    assert [reply.id for reply in last.replies][:1] == ["0051"]


async def test_people_are_suggested_who_wrote_there(people: Commenters) -> None:
    root = await people.write(people.ada)
    await people.write(people.bob, "Yes", root)
    async with people.db.session() as session:
        at_place = await queries.find_handles(session, NEW.lesson, "", None, "")
        in_thread = await queries.find_handles(session, NEW.lesson, "", root.id, "")
        beginning = await queries.find_handles(session, NEW.lesson, "", root.id, people.bob.handle[:2])
        nothing = await queries.find_handles(session, NEW.lesson, "", root.id, "%")

    assert at_place == [(people.ada.handle, "Ada Byron")]
    assert {handle for handle, _ in in_thread} == {people.ada.handle, people.bob.handle}
    assert beginning == [(people.bob.handle, "Bob Moore")]
    assert nothing == []


def grown(people: Commenters, number: int, thread_id: str | None = None, *, pinned: bool = False) -> Comment:
    """A comment of maximal size."""
    comment = make_comment(people.ada, number, thread_id)
    comment.html, comment.renderer_version, comment.pinned = (
        "x" * markdown.MAX_HTML_BYTES,
        markdown.RENDERER_VERSION,
        pinned,
    )
    return comment


def size(*comments: Comment) -> int:
    return sum(len(comment.html.encode()) for comment in comments)


async def test_pages_of_large_comments_are_short_and_leave_none_out(people: Commenters) -> None:
    async with people.db.writing() as session:
        for number in range(12):
            root = grown(people, 10 * number, pinned=number in (3, 4, 5))
            root.reply_count = 4
            session.add(root)
            await session.flush()
            session.add_all(grown(people, 10 * number + reply, root.id) for reply in range(1, 5))
            await session.flush()
    roots: list[str] = []
    before: str | None = None
    async with people.db.session() as session:
        while True:
            threads, before = await queries.list_threads(session, NOBODY, NEW.lesson, "", before)
            assert (
                size(*(one for thread in threads for one in (thread.root, *thread.replies))) <= queries.MAX_PAGE_BYTES
            )
            roots += [thread.root.id for thread in threads]
            assert all(len(thread.replies) == 4 or thread.after for thread in threads), "the way to the others is there"
            if before is None:
                break
        replies: list[str] = []
        after: str | None = None
        root = await session.get_one(Comment, "0110")
        while True:
            thread = await queries.get_thread(session, NOBODY, root, after)
            assert size(root, *thread.replies) <= queries.MAX_PAGE_BYTES
            replies += [reply.id for reply in thread.replies]
            if (after := thread.after) is None:
                break
        last = await queries.get_thread(session, NOBODY, await session.get_one(Comment, "0114"))

    assert sorted(roots) == [f"{10 * number:04}" for number in range(12)]
    assert roots[0] == "0050", "what is pinned comes first"
    assert replies == ["0111", "0112", "0113", "0114"]
    assert last.replies[-1].id == "0114", "the reply that was asked for is there"


async def test_the_queue_and_what_one_person_wrote_go_on_behind_what_fits(people: Commenters) -> None:
    async with people.db.writing() as session:
        session.add_all(grown(people, number) for number in range(10))
    for queued in (True, False):
        seen: list[str] = []
        before: str | None = None
        async with people.db.session() as session:
            while True:
                if queued:
                    listed = await queries.list_moderation_queue(session, queries.ModerationQueue.newest, before)
                else:
                    listed = await queries.list_comments_by_author(session, NOBODY, people.ada.id, before)
                assert 0 < size(*listed.comments) <= queries.MAX_PAGE_BYTES
                seen += [comment.id for comment in listed.comments]
                if (before := listed.before) is None:
                    break
        assert seen == [f"{number:04}" for number in reversed(range(10))]


async def test_a_comment_larger_than_a_page_is_shown_all_the_same(
    people: Commenters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "MAX_PAGE_BYTES", 10)
    async with people.db.writing() as session:
        session.add_all(make_comment(people.ada, number) for number in range(2))
    async with people.db.session() as session:
        first, before = await queries.list_threads(session, NOBODY, NEW.lesson, "")
        second, after = await queries.list_threads(session, NOBODY, NEW.lesson, "", before)
    assert [thread.root.id for thread in (*first, *second)] == ["0001", "0000"]
    assert after is None
