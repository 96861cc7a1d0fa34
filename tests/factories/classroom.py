"""A group with an instructor and a learner, for tests in which code is submitted for review."""

from __future__ import annotations

import re
import secrets
from contextlib import AsyncExitStack
from typing import Any
from zoneinfo import ZoneInfo

import httpx
from fastapi import FastAPI
from sqlalchemy import select

from app.accounts.models import Account, Role
from app.db import Database, now
from app.exercises.models import Review, Submission, Verdict
from app.exercises.verdicts import CheckResult, dump_results
from app.groups.models import Group, GroupMember, GroupRole
from app.progress.models import LedgerEntry
from app.runs.models import RunEvent, RunState
from app.web.dependencies import DATABASE
from tests.factories.accounts import signed_in_browser, store_account
from tests.factories.course import LESSON
from tests.factories.judged_lesson import FACTOR, SHAPE
from tests.factories.stored_runs import store_run

PANEL = "/en/courses/small/first/exercises/double"
CODE = "def double(x):\n    return x + x\n"
EARNED = {(f"{LESSON}#double", 20)}


def where_it_is_noon() -> ZoneInfo:
    """A time zone in which it is between 12 and 1 p.m."""
    ahead = 12 - now().hour
    return ZoneInfo(f"Etc/GMT{-ahead:+d}")  # these names count the hours from there to UTC


class Classroom:
    """A group with an instructor, Grace, and a learner, Ada."""

    def __init__(self, app: FastAPI, running: AsyncExitStack) -> None:
        self.app = app
        self.db: Database = DATABASE.get(app)
        self._running = running
        self.group = ""

    async def open(self) -> Classroom:
        self.group = await self.add_group("Autumn")
        self.grace, self.teacher = await self.person("Grace", Role.instructor)
        self.ada, self.learner = await self.person("Ada")
        await self.join(self.grace, GroupRole.instructor)
        await self.join(self.ada)
        return self

    async def person(self, name: str, role: Role = Role.learner) -> tuple[Account, httpx.AsyncClient]:
        account = await store_account(self.db, role, name=name)
        return account, await self._running.enter_async_context(await signed_in_browser(self.app, account))

    async def add_group(self, name: str) -> str:
        group = secrets.token_hex(16)
        row: dict[str, Any] = {"id": group, "name": name, "course": "small", "time_zone": "UTC", "created_at": now()}
        await self.store(Group(**row, starts_at=None, ends_at=None))
        return group

    async def join(self, account: Account, role: GroupRole = GroupRole.learner, group: str = "") -> None:
        row = {"group_id": group or self.group, "account_id": account.id, "role": role, "joined_at": now()}
        await self.store(GroupMember(**row, accepts_reminders=False, note=""))

    async def store(self, *rows: Any) -> None:
        async with self.db.writing() as session:
            session.add_all(rows)

    async def change(self, statement: Any) -> None:
        async with self.db.writing() as session:
            await session.execute(statement)

    async def rows(self, table: Any) -> list[Any]:
        async with self.db.session() as session:
            return list(await session.scalars(select(table).order_by(*table.__mapper__.primary_key)))

    async def passes(self, learner: str, code: str = CODE, cell: str = "double") -> str:
        """Store a submission of a learner (an ID) that has passed; the ID of its run."""
        facts = {"state": RunState.finished, "outcome": "ok", "judgement": True, "code": code, "cell": cell}
        run = await store_run(self.db, learner_id=learner, lesson=LESSON, **facts)
        results = dump_results([CheckResult(FACTOR, 15, "passed"), CheckResult(SHAPE, 5, "passed")])
        key = secrets.token_hex(16)
        text = '{"kind":"text","seq":1,"at_ms":1,"stream":"stdout","text":"printed <b>4</b>\\n"}'
        await self.store(
            Submission(run_id=run, idempotency_key=key, verdict=Verdict.passed, results=results, lesson_digest="d"),
            RunEvent(run_id=run, seq=1, kind="text", at_ms=1, payload=text),
        )
        return run

    async def ask(self, browser: httpx.AsyncClient | None = None, group: str = "") -> str:
        """Ask for a review; the panel."""
        answer = await (browser or self.learner).post(f"{PANEL}/reviews", data={"group": group or self.group})
        assert answer.status_code == 200, answer.text
        return answer.text

    async def submitted(self, code: str = CODE) -> str:
        """Ask for a review of a submission of Ada's that has passed; the path of its page for the staff."""
        await self.passes(self.ada.learner_id, code)
        assert "waiting for a review" in await self.ask()
        return self.path((await self.rows(Review))[-1].id)

    def path(self, review: str, group: str = "") -> str:
        return f"/en/groups/{group or self.group}/reviews/{review}"

    async def earned(self) -> set[tuple[str, int]]:
        async with self.db.session() as session:
            mine = select(LedgerEntry.subject, LedgerEntry.xp).where(LedgerEntry.kind == "exercise")
            return {(subject, xp) for subject, xp in await session.execute(mine)}


async def decision(browser: httpx.AsyncClient, path: str, **fields: str) -> httpx.Response:
    """Decide with the comments that the page shows now."""
    page = (await browser.get(path)).text
    seen = re.search(r'name="seen" value="([^"]*)"', page)
    return await browser.post(path, data={"seen": seen[1] if seen else "", **fields})
