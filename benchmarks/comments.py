"""How quickly the comments of a lesson are read where 1,000,000 lie in the database, beside 1,000.

Fills two SQLite databases (800 lessons, half of the comments replies, one thread with a tenth of all replies) and
measures, in turns in one run, what the routes do: the first page of a busy lesson, the page a learner deep in it asks
for, the long thread around one reply, the instructors' queue; and storing a comment. Prints the median times and
``ratio: N`` for each: the large database's time by the small one's.

    python benchmarks/comments.py [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

from sqlalchemy import insert, update
from sqlalchemy.ext.asyncio import AsyncSession

from app import migrate
from app.accounts.models import Account, Role
from app.accounts.people import make_account
from app.comments import listing, service
from app.comments.models import Comment, Place
from app.comments.sight import Viewer
from app.comments.views import thread_views
from app.db import Database, now

LESSONS = 800
AUTHORS = 200
LESSON = "course/lesson-0"
"""A lesson that one in eight of all comments is about."""
_HTML = "<p>A comment of a usual length, which asks why the loss is divided by the global batch size.</p>" * 3
_AT_ONCE = 20_000


async def fill(db: Database, size: int) -> str:
    """Store that many comments; returns the id of the longest thread."""
    await migrate.upgrade(db)
    chance = random.Random(1)
    async with db.writing() as session:
        people = [
            await make_account(
                session, email=f"{n}@example.org", name=f"Learner {n}", role=Role.learner, confirmed=True
            )
            for n in range(AUTHORS)
        ]
        await session.execute(update(Account).values(created_at=now() - timedelta(days=30)))
    authors = [account.id for account in people]
    roots: list[tuple[str, str]] = []
    replies: dict[str, int] = {}
    at = now() - timedelta(days=20)
    for start in range(0, size, _AT_ONCE):
        rows = []
        for number in range(start, min(start + _AT_ONCE, size)):
            thread = None
            lesson = LESSON if number % 8 == 0 else f"course/lesson-{chance.randrange(LESSONS)}"
            if number % 2 and roots:
                thread, lesson = roots[0] if number % 20 == 1 else roots[chance.randrange(len(roots))]
                replies[thread] = replies.get(thread, 0) + 1
            name = f"{number:014x}{0:016x}"
            rows.append(_row(name, lesson, thread, chance.choice(authors), at + timedelta(seconds=number)))
            if thread is None:
                roots.append((name, lesson))
        async with db.writing() as session:
            await session.execute(insert(Comment), rows)
    async with db.writing() as session:
        await session.execute(update(Comment), [{"id": name, "replies": count} for name, count in replies.items()])
        await session.execute(insert(Place), [{"lesson": LESSON, "cell": "", "shown": size // 8}])
    return roots[0][0]


def _row(name: str, lesson: str, thread: str | None, author: str, at: object) -> dict[str, object]:
    fixed = {"cell": "", "source": "text", "html": _HTML, "renderer": 1, "language": "en", "state": "shown"}
    own = {"id": name, "key": name, "lesson": lesson, "thread_id": thread, "author_id": author, "created_at": at}
    return {**fixed, **own, "reports": 1 if name.endswith("0") and int(name[:14], 16) % 5000 == 0 else 0}


class Reader:
    """What the routes do with one database."""

    def __init__(self, db: Database, longest: str) -> None:
        self.db = db
        self.longest = longest
        self._writer: Account | None = None

    async def first_page(self) -> None:
        """The threads that a lesson's page shows."""
        await self._threads(None)

    async def far_page(self) -> None:
        """The threads behind the middle of a busy lesson."""
        await self._threads(self._middle)

    async def long_thread(self) -> None:
        """A thread around one reply in its middle."""
        async with self.db.session() as session:
            root = await session.get_one(Comment, self.longest)
            found = await listing.thread(session, Viewer(None, False), root, self._middle)
            await thread_views(session, Viewer(None, False), [found])

    async def queue(self) -> None:
        """What instructors look at."""
        async with self.db.session() as session:
            for kind in listing.Kind:
                await listing.queue(session, kind)

    async def write(self) -> None:
        """Store a comment; it is taken back, so that all rounds find the same."""
        author = self._writer or await self._find_writer()
        draft = service.Draft(LESSON, "", None, "A comment", f"{time.time_ns()}", "en")
        async with self.db.session() as session:
            await service.write(session, author, draft)
            await session.rollback()

    async def prepare(self) -> None:
        """Find the middle of the lesson."""
        async with self.db.session() as session:
            found, _ = await listing.threads(session, Viewer(None, False), LESSON, "")
        newest = int(found[0].root.id[:14], 16)
        self._middle = f"{newest // 2:014x}{0:016x}"

    async def _threads(self, before: str | None) -> None:
        viewer = Viewer(None, False)
        async with self.db.session() as session:
            found, _ = await listing.threads(session, viewer, LESSON, "", before)
            assert len(found) == listing.THREADS
            await thread_views(session, viewer, found)
            await listing.counts(session, LESSON)

    async def _find_writer(self) -> Account:
        async with self.db.writing() as session:
            self._writer = await _newcomer(session)
        return self._writer


async def _newcomer(session: AsyncSession) -> Account:
    return await make_account(session, email="w@example.org", name="Writer", role=Role.learner, confirmed=True)


async def measure(sizes: tuple[int, int], rounds: int) -> None:
    """Fill both, ask both in turns, print the table."""
    with tempfile.TemporaryDirectory() as folder:
        readers = []
        for size in sizes:
            db = Database(f"sqlite+aiosqlite:///{Path(folder) / f'{size}.db'}")
            begun = time.perf_counter()
            readers.append(Reader(db, await fill(db, size)))
            await readers[-1].prepare()
            print(f"{size:,} comments stored in {time.perf_counter() - begun:.0f} s")
        print(f"{'':14}{sizes[0]:>14,}{sizes[1]:>14,}   (ms, median of {rounds})")
        for name in ("first_page", "far_page", "long_thread", "queue", "write"):
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
