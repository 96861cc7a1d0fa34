"""Deletes output that is too old, over a learner's quota, or over the quota that all visitors share.

Like the retention of visitors (``accounts.visitor_retention``), it works in short steps on some learners each hour, in
the order of their IDs. Learners who run code are kept within their quota as output arrives; the sweep handles the
rest, for example after an operator lowers a limit.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Iterable

import structlog
from sqlalchemy import Row, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account
from app.db import now
from app.runs.models import Run, RunState
from app.runs.pruning import DeletionReason, delete_runs, is_visitor_run, lock_pruning, make_room_step, prune_output
from app.runs.quotas import QuotaLimits

_RUN_BATCH_SIZE = 50
_LEARNER_BATCH_SIZE = 100
_BATCHES_PER_SWEEP = 50
"""Per sweep: 5,000 learners an hour."""

_log = structlog.get_logger("sweeper")


class OutputSweeper:
    """One per process. Several processes may sweep at the same time."""

    def __init__(self, limits: QuotaLimits) -> None:
        self._limits = limits
        self._behind = secrets.token_hex(32)
        self._looks = self._rounds = 0
        self._over: deque[str] = deque()
        self._excess: int | None = None
        """Bytes by which all visitors together exceed their quota; None until this sweep has computed it."""
        self._phases = (self._prune_old, self._prune_over_quota, self._prune_visitors)
        self._phase = 0

    async def __call__(self, session: AsyncSession) -> bool:
        """Do one step. True if there is more to do in this sweep. If a step fails, the next sweep skips its phase."""
        if self._phase == len(self._phases):
            self._begin()
        phase, self._phase = self._phase, self._phase + 1
        if await self._phases[phase](session):
            self._phase = phase
        return self._phase < len(self._phases)

    def _begin(self) -> None:
        self._phase = self._looks = self._rounds = 0
        self._excess = None

    async def _prune_old(self, session: AsyncSession) -> bool:
        if self._limits.keep is None:
            return False
        await lock_pruning(session)
        old = select(Run.id).where(Run.pruned_at.is_(None), Run.finished_at < now() - self._limits.keep)
        run_ids = (await session.scalars(old.order_by(Run.finished_at).limit(_RUN_BATCH_SIZE))).all()
        await prune_output(session, run_ids, DeletionReason.age)
        return bool(run_ids)

    async def _prune_over_quota(self, session: AsyncSession) -> bool:
        if not self._over:
            await self._look(session)
        else:
            await lock_pruning(session)
            if not await make_room_step(session, self._over[0], await self._quota_of(session, self._over[0])):
                self._over.popleft()
        return bool(self._over) or (self._looks < _BATCHES_PER_SWEEP and self._rounds < 2)

    async def _look(self, session: AsyncSession) -> None:
        """Find the next learners who exceed their quota."""
        size = func.sum(Run.stored_bytes).label("size")
        sizes = select(Run.learner_id, size).where(Run.learner_id > self._behind).group_by(Run.learner_id)
        some = sizes.order_by(Run.learner_id).limit(_LEARNER_BATCH_SIZE).subquery().c
        owners = select(some.learner_id, some.size, Account.role).outerjoin(
            Account, Account.learner_id == some.learner_id
        )
        rows = (await session.execute(owners.order_by(some.learner_id))).all()
        self._over.extend(learner for learner, size, role in rows if size > self._limits.of_role(role))
        self._looks += 1
        if len(rows) == _LEARNER_BATCH_SIZE:
            self._behind = rows[-1][0]
        else:
            self._behind = ""
            self._rounds += 1

    async def _quota_of(self, session: AsyncSession, learner: str) -> int:
        role = await session.scalar(select(Account.role).where(Account.learner_id == learner))
        return self._limits.of_role(role)

    async def _prune_visitors(self, session: AsyncSession) -> bool:
        await lock_pruning(session)
        if self._excess is None:
            total = await session.scalar(select(func.sum(Run.stored_bytes)).where(is_visitor_run()))
            self._excess = int(total or 0) - self._limits.visitors
            if self._excess > 0:
                _log.warning(
                    "visitors exceed their storage limit; deleting the oldest output", excess_bytes=self._excess
                )
        if self._excess <= 0:
            return False
        theirs = select(Run.id, Run.stored_bytes).where(is_visitor_run(), Run.state == RunState.finished)
        unpruned = theirs.where(Run.pruned_at.is_(None)).order_by(Run.finished_at).limit(_RUN_BATCH_SIZE)
        if rows := (await session.execute(unpruned)).all():
            self._excess -= await prune_output(session, _select_until_freed(rows, self._excess), DeletionReason.quota)
            return True
        for judgement in (False, True):  # tries last: learners can open them again
            some = theirs.where(Run.judgement.is_(judgement)).order_by(Run.id).limit(_RUN_BATCH_SIZE)
            if rows := (await session.execute(some)).all():
                self._excess -= await delete_runs(session, _select_until_freed(rows, self._excess))
                return True
        return False


def _select_until_freed(rows: Iterable[Row[str, int]], excess: int) -> list[str]:
    """As many runs, from rows of (ID, size), as it takes to free ``excess`` bytes."""
    run_ids: list[str] = []
    for run_id, size in rows:
        if excess <= 0:
            break
        run_ids.append(run_id)
        excess -= size
    return run_ids
