"""Fills an empty database with one INSERT … SELECT for each table: ten million rows in minutes, on either database.

``seed.py`` makes more lifelike data, row by row in Python, which takes hours for as many.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import func, select, text

from app import migrate
from app.accounts.models import Account
from app.comments import markdown
from app.db import Database, now

EVENTS_PER_RUN = 100
_ENTRIES_PER_LEARNER = 10
_BUSY = 8
"""One comment in so many is about the first lesson."""
_HTML = markdown.to_html("Why is the loss divided by the **global** batch size here, and not by the one of a replica?")
_NUMBERS = "WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < :size) "
_LEARNER = "'learner-' || {}"
_LESSON = "CASE WHEN {0} % :busy = 0 THEN :lesson ELSE 'seeded/lesson-' || ({0} % :lessons) END"
_ID = "substr('00000000000000' || {0}, length({0} || '') + 1) || '0000000000000000'"
_EVENT = '{"kind":"text","seq":1,"at_ms":1,"stream":"stdout","text":"Epoch 1: loss 0.693, accuracy 0.51"}'

_STATEMENTS = {
    "accounts": (
        "INSERT INTO accounts (id, learner_id, email, email_key, name, handle, role, language, time_zone, "
        "public_profile, email_frequency, created_at) "
        + _NUMBERS
        + f"SELECT 'account-' || n, {_LEARNER.format('n')}, n || '@example.org', n || '@example.org', 'Learner ' || n, "
        "'learner-' || n, 'learner', 'en', 'UTC', false, 'never', :at FROM numbers"
    ),
    "ledger_entries": (
        "INSERT INTO ledger_entries (learner_id, kind, subject, xp, occurred_at) "
        + _NUMBERS
        + f"SELECT {_LEARNER.format(f'(n / {_ENTRIES_PER_LEARNER})')}, 'cell', 'seeded/lesson-1#cell-' || "
        f"(n % {_ENTRIES_PER_LEARNER}), 10, :at FROM numbers"
    ),
    "lesson_progress": (
        "INSERT INTO lesson_progress (learner_id, lesson, started_at, last_seen_at, anchor) "
        + _NUMBERS
        + f"SELECT {_LEARNER.format('n')}, {_LESSON.format('n')}, :at, :at, '' FROM numbers"
    ),
    "comments": (
        "INSERT INTO comments (id, lesson, cell, thread_id, author_id, idempotency_key, source, html, "
        "renderer_version, language, state, created_at, edit_count, pinned, reply_count, helpful_count, same_count, "
        "thanks_count, report_count, reason) "
        + _NUMBERS
        + f"SELECT {_ID.format('n')}, {_LESSON.format('(n / 2)')}, '', CASE WHEN n % 2 = 1 THEN "
        f"{_ID.format('(n - 1)')} END, 'account-' || (n * 17 % :learners), n || '', 'text', :html, :renderer, "
        "'en', 'shown', :at, 0, false, 1 - n % 2, 0, 0, 0, 0, '' FROM numbers"
    ),
    "comment_counters": (
        "INSERT INTO comment_counters (lesson, cell, comment_count) "
        "SELECT lesson, cell, count(*) FROM comments WHERE :size > 0 GROUP BY lesson, cell"
    ),
    "runs": (
        "INSERT INTO runs (id, learner_id, session_id, lesson, cell, code, topology, keras, language, created_at, "
        "submitted_at, judgement, state, outcome, started_at, finished_at, duration_ms, last_seq, stored_bytes) "
        + _NUMBERS
        + f"SELECT {_ID.format('n')}, {_LEARNER.format('(n % :learners)')}, {_ID.format('n')}, "
        f"{_LESSON.format('n')}, 'one', 'print(1)', 'cpu', 3, 'en', :at, :at, false, 'finished', 'ok', :at, :at, 900, "
        f"{EVENTS_PER_RUN}, {EVENTS_PER_RUN * 150} FROM numbers"
    ),
    "run_events": (
        "INSERT INTO run_events (run_id, seq, kind, at_ms, payload) "
        + _NUMBERS
        + f"SELECT {_ID.format(f'(n / {EVENTS_PER_RUN})')}, 1 + n % {EVENTS_PER_RUN}, 'text', n, :event FROM numbers"
    ),
}


@dataclass(frozen=True, slots=True)
class Size:
    """How much a database holds."""

    learners: int
    comments: int
    events: int
    lessons: int

    def rows(self) -> dict[str, int]:
        """The number of rows of each table."""
        runs = max(1, self.events // EVENTS_PER_RUN)
        return {
            "accounts": self.learners,
            "ledger_entries": self.learners * _ENTRIES_PER_LEARNER,
            "lesson_progress": self.learners,
            "comments": self.comments,
            "comment_counters": 1,
            "runs": runs,
            "run_events": runs * EVENTS_PER_RUN,
        }

    def __str__(self) -> str:
        return f"{self.learners:,} / {self.comments:,} / {self.events:,} / {self.lessons:,}"


async def fill(db: Database, size: Size, lesson: str) -> None:
    """Store all of it. ``lesson`` is the busiest one.

    Raises:
        ValueError: the database has accounts already.
    """
    await migrate.upgrade(db)
    async with db.session() as session:
        if await session.scalar(select(func.count()).select_from(Account)):
            raise ValueError("this database has accounts already")
    values = {"lesson": lesson, "lessons": size.lessons, "learners": size.learners, "busy": _BUSY}
    values |= {"html": _HTML, "renderer": markdown.RENDERER_VERSION, "event": _EVENT}
    at = now() - timedelta(days=3)
    values["at"] = at.replace(tzinfo=None) if db.engine.dialect.name == "sqlite" else at
    for table, rows in size.rows().items():
        statement = text(_STATEMENTS[table])
        async with db.writing() as session:
            await session.execute(statement, {name: values.get(name, rows) for name in statement._bindparams})
    async with db.writing() as session:
        await session.execute(text("ANALYZE"))
