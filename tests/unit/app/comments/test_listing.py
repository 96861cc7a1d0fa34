"""Lists of comments come from one index each, on SQLite and on PostgreSQL, however many there are beside them."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from sqlalchemy import event, text

from app.comments import listing
from app.comments.models import Comment
from app.comments.sight import Viewer
from app.db import Database, now
from tests.factories.accounts import an_account

NOBODY, TEACHER = Viewer(None, False), Viewer("teacher", True)
_SPOILT = re.compile(r"SCAN (?!anon_)|USE TEMP B-TREE FOR ORDER BY|Seq Scan on comment|Sort Key: comments\.")


@pytest.fixture
async def crowd(database: Database) -> Database:
    """Some thousand comments at ten places; PostgreSQL knows how they are spread."""
    account = await an_account(database)
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
        key=f"{lesson} {number}",
        source="x",
        html="<p>x</p>",
        renderer=1,
        language="en",
        created_at=begun,
        replies=100 if not number else 0,
        state="held" if number == 7 else "shown",
        reports=1 if number == 8 else 0,
    )


async def test_no_list_reads_more_than_it_shows(crowd: Database) -> None:
    asked: list[tuple[str, object]] = []

    def note(_connection: object, _cursor: object, statement: str, parameters: object, *_: object) -> None:
        if statement.lstrip().startswith("SELECT"):
            asked.append((statement, parameters))

    engine = crowd.engine.sync_engine
    event.listen(engine, "before_cursor_execute", note)
    async with crowd.session() as session:
        for viewer in (NOBODY, TEACHER):
            threads, before = await listing.threads(session, viewer, "c/3", "")
            await listing.threads(session, viewer, "c/3", "", before)
            long = await listing.thread(session, viewer, next(one.root for one in threads))
            await listing.thread(session, viewer, long.root, "00035003")
        for kind in (listing.Kind.held, listing.Kind.reported):  # the newest are read from the table's own end
            await listing.queue(session, kind, "00020000")
        await listing.counts(session, "c/3")
        await listing.handles_at(session, "c/3", "", "00000003", "a")
    event.remove(engine, "before_cursor_execute", note)

    explain = "EXPLAIN QUERY PLAN " if engine.dialect.name == "sqlite" else "EXPLAIN "
    async with crowd.engine.connect() as connection:
        for statement, parameters in asked:
            if "comments" not in statement or "LIMIT" not in statement:
                continue
            rows = await connection.exec_driver_sql(explain + statement, parameters)  # type: ignore[arg-type]
            plan = "\n".join(str(row[-1]) for row in rows)
            assert not _SPOILT.search(plan), f"{statement}\n{plan}"
