"""Databases with rows in every table, to see that each of them survives."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import insert, select, text

from app import migrate
from app.accounts.models import ApiToken, Authenticator, RecoveryCode
from app.admin.models import AuditEntry
from app.comments.models import Comment
from app.db import Database
from app.exercises.models import PredictionAnswer, QuizAnswer, Review, ReviewComment, Submission
from app.groups.models import Group, GroupDeadline, GroupInvitation, GroupMember
from app.playground.models import SharedPlayground
from app.runs.models import CodeDraft, Run, RunEvent, ScratchCell
from app.site_switches import SiteSwitch
from app.tables import TABLES

DUMPS = Path(__file__).parents[1] / "golden" / "pre_release"
TIME = datetime(2026, 11, 23, 4, 5, 6, 789, UTC)
ADA = "a1000000000000000000000000000000"
DIFFICULT = "tab\t, \"quotes', \\ backslash, 한국어, 中文, é, e\u0301, 👩‍💻, \u2028, \x01, \r\n"
"""Characters that formats of rows trip over."""


async def load_pre_release(db: Database) -> None:
    """Make an empty database what it was before the first version, from a dump of the same kind of database."""
    script = (DUMPS / f"{db.engine.dialect.name}.sql").read_text(encoding="utf-8")
    async with db.engine.connect() as connection:
        driver: Any = (await connection.get_raw_connection()).driver_connection
        await (driver.executescript(script) if db.file() is not None else driver.execute(script))
        await connection.invalidate()  # it has the settings of the dump


async def fill_every_table(db: Database) -> None:
    """Give an empty database this version's schema, and rows in every table of it."""
    await load_pre_release(db)
    await migrate.upgrade(db)
    async with db.writing() as session:
        run = (await session.execute(select(Run.id))).scalars().first()
        root = (await session.execute(select(Comment).where(Comment.thread_id.is_(None)))).scalars().first()
        assert run is not None
        assert root is not None
        copied = {column.name: getattr(root, column.name) for column in Comment.__table__.columns}
        reply = copied | {"id": "0", "thread_id": root.id, "idempotency_key": "reply", "source": DIFFICULT}
        for table, row in (
            (Comment, reply),
            (Authenticator, {"account_id": ADA, "secret": "S", "last_step": 2**62, "created_at": TIME}),
            (
                AuditEntry,
                {"id": "1", "created_at": TIME, "action": "role_changed", "operator": "root", "detail": DIFFICULT}
                | {"actor_id": None, "account_id": ADA},
            ),
            (
                ApiToken,
                {"token_hash": "a" * 64, "public_id": "p", "account_id": ADA, "name": DIFFICULT, "method": "passkey"}
                | {"scopes": "progress:read", "created_at": TIME, "expires_at": TIME, "last_used_at": None},
            ),
            (SiteSwitch, {"name": "drain", "since": TIME}),
            (RecoveryCode, {"code_hash": "h", "account_id": ADA}),
            (
                CodeDraft,
                {"account_id": ADA, "lesson": "c/l", "cell": "x", "code": DIFFICULT, "original_digest": "0" * 16}
                | {"version": 3, "updated_at": TIME},
            ),
            (
                ScratchCell,
                {"learner_id": "v", "lesson": "c/l", "name": "mine-1", "kind": "text", "source": DIFFICULT}
                | {"position": 0, "version": 1, "created_at": TIME, "updated_at": TIME},
            ),
            (
                SharedPlayground,
                {"id": "s" * 22, "account_id": ADA, "title": DIFFICULT, "topology": "cpu", "keras": 3}
                | {"cells": "[]", "created_at": TIME},
            ),
            (
                Group,
                {"id": "9" * 32, "name": DIFFICULT, "course": "c", "time_zone": "Asia/Seoul", "created_at": TIME}
                | {"starts_at": None, "ends_at": TIME},
            ),
            (
                GroupMember,
                {"group_id": "9" * 32, "account_id": ADA, "role": "learner", "joined_at": TIME, "note": DIFFICULT}
                | {"code_shared_at": None, "accepts_reminders": True, "reminded_at": TIME, "note_changed_at": TIME},
            ),
            (
                GroupInvitation,
                {"token_hash": "t" * 64, "group_id": "9" * 32, "created_at": TIME, "expires_at": TIME},
            ),
            (GroupDeadline, {"group_id": "9" * 32, "lesson": "c/l", "exercise": "", "due_at": TIME}),
            (
                Review,
                {"id": "r1", "account_id": ADA, "group_id": "9" * 32, "lesson": "c/l", "exercise": "x", "run_id": run}
                | {"code": DIFFICULT, "output": "", "results": "[]", "state": "accepted", "requested_at": TIME}
                | {"reviewer_id": None, "decided_at": TIME, "remark": DIFFICULT},
            ),
            (
                ReviewComment,
                {"id": "c1", "review_id": "r1", "author_id": ADA, "line": 1, "source": DIFFICULT, "created_at": TIME},
            ),
            (Submission, {"run_id": run, "idempotency_key": "k", "results": DIFFICULT, "lesson_digest": "d"}),
            (
                QuizAnswer,
                {"learner_id": "v", "lesson": "c/l", "quiz": "q", "first_choices": "1", "first_right": True}
                | {"choices": "0,1", "answered_at": TIME, "tries": 2},
            ),
            (
                PredictionAnswer,
                {"learner_id": "v", "lesson": "c/l", "prediction": "p", "guess": None, "informed": False}
                | {"answered_at": TIME, "result": "", "right": None},
            ),
        ):
            await session.execute(insert(table), [row])
        # Replies are now stored, and read, before the comments that they reply to.
        sqlite = "UPDATE comments SET rowid = -rowid"
        postgresql = "UPDATE comments SET language = language WHERE thread_id IS NULL"
        await session.execute(text(sqlite if db.file() is not None else postgresql))
    rows = await all_rows(db)
    assert [name for name, found in rows.items() if not found] == []


async def add_runs(db: Database, first: int, count: int, events: int = 1) -> None:
    """Store runs with consecutive numbers in one transaction. The ``last_seq`` of each is its number of events."""
    facts: dict[str, Any] = {
        "learner_id": "v",
        "session_id": "s",
        "lesson": "c/l",
        "cell": "x",
        "code": "1",
        "topology": "cpu",
    }
    facts |= {"keras": 3, "language": "en", "created_at": TIME, "last_seq": events}
    async with db.writing() as session:
        await session.execute(insert(Run), [facts | {"id": f"run-{n}"} for n in range(first, first + count)])
        event: dict[str, Any] = {"kind": "text", "at_ms": 1, "payload": DIFFICULT}
        seqs = [(n, seq) for n in range(first, first + count) for seq in range(1, events + 1)]
        await session.execute(insert(RunEvent), [event | {"run_id": f"run-{n}", "seq": seq} for n, seq in seqs])


async def all_rows(db: Database) -> dict[str, list[dict[str, Any]]]:
    """Every row of every table, by the names of the models, in the order of its key."""
    found = {}
    async with db.session() as session:
        for table in TABLES:
            ordered = select(table).order_by(*table.primary_key)
            found[table.name] = [dict(row._mapping) for row in await session.execute(ordered)]
    return found
