"""Deletes the data of visitors whose cookie has expired, so that nobody can ever use it again.

A visitor has no row of its own. Its work is stored under its ID in the tables of several features; the latest timestamp
among them is when it was last seen. Each sweep checks the next learners in the order of their IDs, read from indexes
that start with the ID, so that it never scans a table and every learner is checked eventually.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Select, select, union
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import InstrumentedAttribute

from app.accounts.merge import lock_visitor
from app.accounts.models import Account, MergedVisitor
from app.db import delete_batch, now
from app.web.dependencies import AppKey

Purger = Callable[[AsyncSession, str, datetime, int], Awaitable[int]]
"""Deletes (or anonymizes) at most that many of a feature's rows of a learner that are older than a moment.
Returns how many; 0 once none is left."""

_LEARNERS_PER_PAGE = 100
_PAGES_PER_SWEEP = 50
"""Per sweep: 5,000 learners an hour."""
_ROWS_PER_TRANSACTION = 500


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """A table in which a feature stores learners' data."""

    learner: InstrumentedAttribute[Any]
    """The column with the learner ID; an index must start with it."""
    at: InstrumentedAttribute[datetime]
    """When the row was written."""
    purger: Purger | None = None
    """By default, rows are deleted."""

    async def forget(self, session: AsyncSession, learner: str, before: datetime, most: int) -> int:
        """Call the purger, or delete rows."""
        if self.purger is not None:
            return await self.purger(session, learner, before, most)
        return await delete_batch(session, self.learner.parent.class_, most, self.learner == learner, self.at < before)


RETENTION_RULES = AppKey[Sequence[RetentionRule]]("retention_rules")
"""The retention rules of all features."""


class VisitorRetention:
    """The cleanup task, one per process. It starts at a random ID, so that short-lived processes also reach everyone.

    Args:
        kept: how long visitors are kept after they were last seen; None means forever.
    """

    def __init__(self, traces: Sequence[RetentionRule], kept: timedelta | None) -> None:
        self._traces = traces
        self._kept = kept
        self._behind = secrets.token_hex(32)
        self._looks = self._rounds = 0
        self._gone: deque[str] = deque()

    async def __call__(self, session: AsyncSession) -> bool:
        """Delete some data of one expired visitor, or look for more such visitors."""
        if self._kept is None:
            return False
        before = now() - self._kept
        if self._gone:
            learner = self._gone.popleft()  # removed first, so that a failure does not block the others
            if await self._forget(session, learner, before):
                self._gone.appendleft(learner)
        else:
            learners = await self._next(session)
            self._gone.extend(await self._unseen(session, learners, before))
            self._go_on(learners)
        if self._gone or (self._looks < _PAGES_PER_SWEEP and self._rounds < 2):
            return True
        self._looks = self._rounds = 0
        return False

    def _go_on(self, learners: Sequence[str]) -> None:
        self._looks += 1
        if len(learners) == _LEARNERS_PER_PAGE:
            self._behind = learners[-1]
        else:
            self._behind = ""
            self._rounds += 1

    async def _next(self, session: AsyncSession) -> Sequence[str]:
        ids = [
            select(trace.learner.label("id"))
            .where(trace.learner > self._behind)
            .distinct()
            .order_by(trace.learner)
            .limit(_LEARNERS_PER_PAGE)
            .subquery()
            for trace in self._traces
        ]
        everyone = union(*(select(some.c.id) for some in ids)).subquery()
        return (await session.scalars(select(everyone.c.id).order_by(everyone.c.id).limit(_LEARNERS_PER_PAGE))).all()

    async def _unseen(self, session: AsyncSession, learners: Sequence[str], before: datetime) -> list[str]:
        """Those of ``learners`` that have no account and no activity since ``before``."""
        staying: set[str] = set()
        if learners:
            staying.update(await session.scalars(union(*self._reasons(learners, before))))
        return [learner for learner in learners if learner not in staying]

    def _reasons(self, learners: Sequence[str], before: datetime) -> Iterable[Select[str]]:
        """Queries for the learners to keep."""
        yield select(Account.learner_id).where(Account.learner_id.in_(learners))
        yield select(MergedVisitor.visitor_id).where(MergedVisitor.visitor_id.in_(learners))
        for trace in self._traces:
            yield select(trace.learner).where(trace.learner.in_(learners), trace.at >= before)

    async def _forget(self, session: AsyncSession, learner: str, before: datetime) -> bool:
        """Delete some data of one visitor. True if anything was deleted, so there may be more."""
        await lock_visitor(session, learner)
        if not await self._unseen(session, [learner], before):
            return False  # active again, or merged into an account, since we checked
        left = _ROWS_PER_TRANSACTION
        for trace in self._traces:
            if left > 0:
                left -= await trace.forget(session, learner, before, left)
        return left < _ROWS_PER_TRANSACTION
