"""How quickly the comments of a lesson are read where 1,000,000 lie in the database, beside 1,000.

Fills two SQLite databases (800 lessons, half of the comments replies, one thread with a tenth of all replies) and
measures, in turns in one run, what the routes do: the first page of a busy lesson, and the facts that tell whether it
has changed; the page a learner deep in it asks for, the long thread around one reply, the instructors' queue; and
storing a comment. Prints the median times and ``ratio: N`` for each: the large database's time by the small one's.

    python benchmarks/comment_queries.py [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

from sqlalchemy import text

from app import migrate
from app.accounts.models import Account
from app.comments import queries
from app.comments.editing import CommentDraft, create_comment
from app.comments.list_facts import load_facts
from app.comments.models import Comment, CommentCounter
from app.comments.permissions import Viewer
from app.comments.views import thread_views
from app.db import Database, now

LESSONS = 800
AUTHORS = 200
LESSON = "course/lesson-0"
"""A lesson that one in eight of all comments is about."""
_HTML = "<p>A comment of a usual length, which asks why the loss is divided by the global batch size.</p>" * 3


_NUMBERED = """
WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < :size),
placed AS (
  SELECT n, CASE
    WHEN n % 2 = 0 THEN NULL WHEN n % 20 = 1 THEN 0 ELSE 2 * ((n * 2654435761) % ((n + 1) / 2))
  END AS root FROM numbers
)
INSERT INTO comments (
  id, lesson, cell, thread_id, author_id, idempotency_key, source, html, renderer_version, language, state, created_at,
  edit_count, pinned, reply_count, helpful_count, same_count, thanks_count, report_count, reason
)
SELECT printf('%014x%016x', n, 0),
  CASE WHEN coalesce(root, n) % 8 = 0 THEN :lesson ELSE 'course/lesson-' || (coalesce(root, n) * 31 % :lessons) END,
  '', CASE WHEN root IS NOT NULL THEN printf('%014x%016x', root, 0) END, 'author-' || (n * 17 % :authors),
  CAST(n AS TEXT), 'text', :html, 1, 'en', 'shown', :at, 0, 0, 0, 0, 0, 0, n % 5000 = 1, ''
FROM placed
"""
_COUNTED = """
UPDATE comments SET reply_count = (SELECT count(*) FROM comments AS reply WHERE reply.thread_id = comments.id)
WHERE thread_id IS NULL
"""


async def fill(db: Database, size: int) -> str:
    """Store that many comments; returns the id of the longest thread."""
    await migrate.upgrade(db)
    long_ago = now() - timedelta(days=20)
    values = {"size": size, "lesson": LESSON, "lessons": LESSONS, "authors": AUTHORS, "html": _HTML, "at": long_ago}
    async with db.writing() as session:
        session.add_all(_author(number) for number in range(AUTHORS))
        await session.flush()
        await session.execute(text(_NUMBERED), values)
        await session.execute(text(_COUNTED))
        session.add(CommentCounter(lesson=LESSON, cell="", comment_count=size // 8))
    return f"{0:030x}"


def _author(number: int) -> Account:
    name = f"author-{number}"
    address = f"{name}@example.org"
    own = {"id": name, "learner_id": name, "email": address, "email_key": address, "handle": name, "name": name}
    return Account(**own, created_at=now() - timedelta(days=30))


class Reader:
    """What the routes do with one database."""

    def __init__(self, db: Database, longest: str) -> None:
        self.db = db
        self.longest = longest

    async def first_page(self) -> None:
        """The threads that a lesson's page shows."""
        await self._threads(None)

    async def known_page(self) -> None:
        """What tells whether that page can be shown as it was rendered before."""
        await load_facts(self.db, Viewer("a learner", False), LESSON, "")

    async def far_page(self) -> None:
        """The threads behind the middle of a busy lesson."""
        await self._threads(self._middle)

    async def long_thread(self) -> None:
        """A thread around one reply in its middle."""
        async with self.db.session() as session:
            root = await session.get_one(Comment, self.longest)
            found = await queries.get_thread(session, Viewer(None, False), root, self._middle)
            await thread_views(session, Viewer(None, False), [found])

    async def queue(self) -> None:
        """What instructors look at."""
        async with self.db.session() as session:
            for kind in queries.ModerationQueue:
                await queries.list_moderation_queue(session, kind)

    async def write(self) -> None:
        """Store a comment; it is taken back, so that all rounds find the same."""
        author = _author(AUTHORS)
        draft = CommentDraft(LESSON, "", None, "A comment", f"{time.time_ns()}", "en")
        async with self.db.session() as session:
            session.add(author)
            await session.flush()
            await create_comment(session, author, draft)
            await session.rollback()

    async def prepare(self) -> None:
        """Find the middle of the lesson."""
        async with self.db.session() as session:
            found, _ = await queries.list_threads(session, Viewer(None, False), LESSON, "")
        newest = int(found[0].root.id[:14], 16)
        self._middle = f"{newest // 2:014x}{0:016x}"

    async def _threads(self, before: str | None) -> None:
        viewer = Viewer(None, False)
        async with self.db.session() as session:
            found, _ = await queries.list_threads(session, viewer, LESSON, "", before)
            assert len(found) == queries.THREADS_PER_PAGE
            await thread_views(session, viewer, found)
            await queries.count_by_cell(session, LESSON)


async def measure(sizes: tuple[int, int], rounds: int) -> None:
    """Fill both, ask both in turns, print the table."""
    with tempfile.TemporaryDirectory() as folder:
        readers = []
        for size in sizes:
            url = f"sqlite+aiosqlite:///{Path(folder) / f'{size}.db'}"
            begun = time.perf_counter()
            filled = Database(url)
            longest = await fill(filled, size)
            await filled.close()  # and with it the journal of a million rows at once, which no server ever writes
            readers.append(Reader(Database(url), longest))
            await readers[-1].prepare()
            print(f"{size:,} comments stored in {time.perf_counter() - begun:.0f} s")
        print(f"{'':14}{sizes[0]:>14,}{sizes[1]:>14,}   (ms, median of {rounds})")
        for name in ("first_page", "known_page", "far_page", "long_thread", "queue", "write"):
            small, large = await _in_turns([getattr(reader, name) for reader in readers], rounds)
            print(f"{name:14}{small:14.2f}{large:14.2f}   ratio: {large / small:.2f}")
        for reader in readers:
            await reader.db.close()


async def _in_turns(asks: list[Callable[[], Awaitable[None]]], rounds: int) -> list[float]:
    times: list[list[float]] = [[] for _ in asks]
    for _ in range(rounds + 3):
        for ask, took in zip(asks, times, strict=True):
            begun = time.perf_counter()
            await ask()
            took.append((time.perf_counter() - begun) * 1000)
    return [statistics.median(took[3:]) for took in times]


def main() -> None:
    """Parse the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="20,000 comments instead of 1,000,000")
    quick = parser.parse_args().quick
    asyncio.run(measure((1_000, 20_000 if quick else 1_000_000), 30 if quick else 100))


if __name__ == "__main__":
    main()
