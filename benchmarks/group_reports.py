"""How quickly the pages of a group with 10,000 learners and a course of 800 lessons are read, beside a group of 30.

Both groups are in one database, and their learners did equally much: lessons opened and completed, runs of which some
failed, tries at exercises, and questions. Measures what the routes do for each page, in turns, and counts the
statements. Prints the median times, and the time that the process spent on the large group on a processor, which says
more on a busy machine. For PostgreSQL, ``--database`` names an empty database.

    python benchmarks/group_reports.py [--quick] [--database URL]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from sqlalchemy import event, func, select, text

from app import migrate
from app.db import Database, now
from app.groups.cell_details import describe_errors, describe_limits, describe_wrong_answers
from app.groups.learner_lists import list_stopped, list_stuck
from app.groups.learners import LearnerOrder, list_learners, report_learner
from app.groups.members import find_member
from app.groups.models import Group, GroupMember
from app.groups.report_table import report_window
from app.groups.reports import REPORTS, ReportScope, count_learners
from app.lessons.catalog import Catalog

OPENED, RUNS, TRIES = 60, 40, 12
"""Of each learner: lessons opened, runs, and those of them that are tries at exercises. A tenth of the others fails."""
SMALL = 30
COURSE, CELL = "seeded", "exercise"
_COURSE_FILE = (
    'title.en = "Seeded"\nsummary.en = "Seeded."\n\n[[modules]]\nslug = "one"\ntitle.en = "One"\nlessons = [{}]\n'
)
_LESSON_FILE = """---
title: Lesson {number}
summary: Seeded.
minutes: 5
status: published
---
```{{code-cell}} python
:name: exercise

print(1)
```
"""
_EACH = "WITH RECURSIVE each(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM each WHERE n + 1 < {}) "
_LESSON = f"'{COURSE}/lesson-' || "
_MEMBERS = """
INSERT INTO group_members (group_id, account_id, role, joined_at, code_shared_at, accepts_reminders, note)
SELECT '{}', id, 'learner', created_at, created_at, true, '' FROM accounts ORDER BY id LIMIT {}
"""
_STATEMENTS = (
    f"""
INSERT INTO accounts (
  id, learner_id, email, email_key, email_confirmed_at, name, handle, role, language, time_zone, public_profile,
  email_frequency, created_at
)
{_EACH.format(":learners")}
SELECT 'account-' || n, 'learner-' || n, n || '@example.org', n || '@example.org', :at, 'Learner ' || n,
  'learner-' || n, 'learner', 'en', 'UTC', false, 'never', :at
FROM each
""",
    _MEMBERS.format("a" * 32, 1_000_000),
    _MEMBERS.format("b" * 32, SMALL),
    f"""
INSERT INTO lesson_progress (learner_id, lesson, started_at, end_reached_at, completed_at, last_seen_at, anchor)
{_EACH.format(OPENED)}
SELECT account.learner_id, {_LESSON} n, :at, CASE WHEN n % 3 < 2 THEN account.created_at END,
  CASE WHEN n % 2 = 0 THEN account.created_at END, :at, ''
FROM accounts AS account CROSS JOIN each
""",
    f"""
INSERT INTO runs (
  id, learner_id, session_id, lesson, cell, code, topology, keras, language, created_at, judgement, state, outcome,
  last_seq, stored_bytes
)
{_EACH.format(RUNS)}
SELECT 'run-' || account.id || '-' || n, account.learner_id, 's', {_LESSON} (n % {OPENED}), '{CELL}', 'print(1)', 'cpu',
  3, 'en', :at, n < {TRIES}, 'finished',
  CASE WHEN n >= {TRIES} AND n % 10 = 3 THEN 'error' WHEN n = 20 THEN 'memory' ELSE 'ok' END, 1, 1000
FROM accounts AS account CROSS JOIN each
""",
    r"""
INSERT INTO submissions (run_id, idempotency_key, verdict, results, lesson_digest)
SELECT id, id, CASE WHEN lesson LIKE '%0' THEN 'passed' ELSE 'failed' END,
  '[{"name"\:"right","xp"\:5,"outcome"\:"failed","message"\:"It got 3."}]', 'd'
FROM runs WHERE judgement
""",
    r"""
INSERT INTO run_events (run_id, seq, kind, at_ms, payload)
SELECT id, 1, 'error', 1, '{"kind"\:"error","seq"\:1,"at_ms"\:1,"name"\:"ValueError","value"\:"no","frames"\:[]}'
FROM runs WHERE outcome = 'error'
""",
    f"""
INSERT INTO comments (
  id, lesson, cell, author_id, idempotency_key, source, html, renderer_version, language, state, created_at, edit_count,
  pinned, reply_count, helpful_count, same_count, thanks_count, report_count, reason
)
SELECT id, {_LESSON} '1', '', id, id, 'Why?', '', 1, 'en', 'shown', created_at, 0, false, 0, 0, 0, 0, 0, ''
FROM accounts
""",
    "ANALYZE",
)


def write_course(root: Path, lessons: int) -> Catalog:
    """A course of so many short lessons."""
    names = [f"lesson-{number}" for number in range(lessons)]
    for number, name in enumerate(names):
        (root / COURSE / name).mkdir(parents=True)
        (root / COURSE / name / "lesson.md").write_text(_LESSON_FILE.format(number=number), encoding="utf-8")
    listed = ", ".join(f'"{name}"' for name in names)
    (root / COURSE / "course.toml").write_text(_COURSE_FILE.format(listed), encoding="utf-8")
    catalog = Catalog(root, quiet=True)
    catalog.reload()
    return catalog


async def fill(db: Database, learners: int) -> None:
    """Store a group of all learners, and one of 30 of them."""
    await migrate.upgrade(db)
    at = now() - timedelta(days=9)
    async with db.writing() as session:
        for group_id in ("a" * 32, "b" * 32):
            row = {"name": "A class", "course": COURSE, "time_zone": "UTC", "created_at": at}
            session.add(Group(id=group_id, **row, starts_at=None, ends_at=None))
    values = {"learners": learners, "at": at.replace(tzinfo=None) if db.engine.dialect.name == "sqlite" else at}
    for written in _STATEMENTS:
        statement = text(written)
        async with db.writing() as session:
            await session.execute(statement, {name: values[name] for name in statement._bindparams})


class Reader:
    """What the routes do for the pages of one group. ``statements`` counts what the last page sent."""

    def __init__(self, db: Database, group_id: str, catalog: Catalog) -> None:
        self.db, self.group_id, self.catalog = db, group_id, catalog
        self.statements = 0

    async def read(self, page: str) -> None:
        """Read a page: a report by its name, one of ``LEARNERS``, or another one of ``PAGES``."""
        with self._counting():
            async with self.db.session() as session:
                group = await session.get_one(Group, self.group_id)
                scope = ReportScope(session, group, report_window(group, "30", now()), self.catalog, "en", now())
                await self._read(page, scope)

    async def _read(self, page: str, scope: ReportScope) -> None:
        lesson = f"{COURSE}/lesson-1"
        if page in REPORTS:
            table = await REPORTS[page](scope)
            assert table.rows
            await count_learners(scope)
        elif page in LEARNERS:
            assert len((await list_learners(scope, "", 0, 0, order=LEARNERS[page])).rows) >= SMALL
        elif page == "learner":
            member, account = await find_member(scope.session, scope.group, "account-1")
            assert (await report_learner(scope, account, member)).lessons
        elif page == "cell-errors":
            assert (await describe_errors(scope, f"{COURSE}/lesson-13", CELL)).table.rows
        elif page == "cell-limits":
            assert (await describe_limits(scope, f"{COURSE}/lesson-20", CELL)).table.rows
        elif page == "stopped":
            await list_stopped(scope, lesson)
        else:
            assert (await describe_wrong_answers(scope, lesson, CELL)).table.rows
            await list_stuck(scope, lesson, CELL)

    @contextmanager
    def _counting(self) -> Iterator[None]:
        self.statements = 0

        def count(*_: object) -> None:
            self.statements += 1

        engine = self.db.engine.sync_engine
        event.listen(engine, "before_cursor_execute", count)
        try:
            yield
        finally:
            event.remove(engine, "before_cursor_execute", count)


LEARNERS = {"learners": LearnerOrder.name, "learners-stuck": LearnerOrder.stuck, "learners-seen": LearnerOrder.seen}
"""The table of learners, sorted by name and by other columns."""
PAGES = (*REPORTS, *LEARNERS, "learner", "stopped", "cell-errors", "cell-limits", "wrong-answers")


async def measure(url: str, learners: int, lessons: int, rounds: int) -> None:
    """Fill, read every page of both groups in turns, print the table."""
    with tempfile.TemporaryDirectory() as folder:
        catalog = write_course(Path(folder) / "lessons", lessons)
        url = url or f"sqlite+aiosqlite:///{Path(folder) / 'lockstep.db'}"
        begun = time.perf_counter()
        filled = Database(url)
        await fill(filled, learners)
        await filled.close()
        db = Database(url)
        print(f"{learners:,} learners, {lessons} lessons: stored in {time.perf_counter() - begun:.0f} s")
        readers = [Reader(db, "b" * 32, catalog), Reader(db, "a" * 32, catalog)]
        async with db.session() as session:
            large = select(func.count()).where(GroupMember.group_id == "a" * 32)
            assert await session.scalar(large) == learners
        print(f"{'':16}{SMALL:>12,}{learners:>12,}{'CPU':>12}   statements   (ms, median of {rounds})")
        for page in PAGES:
            (small, _), (big, busy) = await _in_turns([reader.read for reader in readers], page, rounds)
            print(f"{page:16}{small:12.1f}{big:12.1f}{busy:12.1f}{readers[1].statements:13}")
        await db.close()


async def _in_turns(reads: list[Callable[[str], Awaitable[None]]], page: str, rounds: int) -> list[tuple[float, float]]:
    """Of each: the median of the time, and of the processor time."""
    took: list[list[tuple[float, float]]] = [[] for _ in reads]
    for _ in range(rounds + 1):
        for read, times in zip(reads, took, strict=True):
            begun, busy = time.perf_counter(), time.process_time()
            await read(page)
            times.append(((time.perf_counter() - begun) * 1000, (time.process_time() - busy) * 1000))
    return [(statistics.median(t for t, _ in times[1:]), statistics.median(t for _, t in times[1:])) for times in took]


def main() -> None:
    """Parse the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="500 learners and 50 lessons")
    parser.add_argument("--database", default="", help="the URL of an empty database, instead of one in SQLite")
    asked = parser.parse_args()
    size = (500, 50, 3) if asked.quick else (10_000, 800, 5)
    asyncio.run(measure(asked.database, *size))


if __name__ == "__main__":
    main()
