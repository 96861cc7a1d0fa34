"""Which runs no process follows: each process says now and then which runs it follows, in ``runs.followed_until``.

A run whose time is over was followed by a process that has been killed, or that has lost its database or its network:
another process adopts it. Several processes may follow a run at once (``runs.event_log``), so a clock that is off, or a
process that is late, costs some work and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.bus import publish_on_commit
from app.db import now
from app.runs.models import Run, RunState

FOLLOWED_FOR = timedelta(seconds=5)
"""How long a process is believed to follow a run since it last said so."""
RENEWAL_INTERVAL_S = 1.5
UNFOLLOWED_TOPIC = "unfollowed runs"
"""Published when a process that ends leaves runs behind."""
_UNFINISHED = (RunState.queued, RunState.running)
_BATCH_SIZE = 500


async def renew(session: AsyncSession, run_ids: Sequence[str]) -> None:
    """Say that this process still follows these runs."""
    await _set_followed_until(session, run_ids, now() + FOLLOWED_FOR)


async def release(session: AsyncSession, run_ids: Sequence[str]) -> None:
    """Say that this process no longer follows these runs."""
    await _set_followed_until(session, run_ids, None)
    publish_on_commit(session, UNFOLLOWED_TOPIC)


async def find_unfollowed(session: AsyncSession) -> Sequence[str]:
    """The IDs of some unfinished runs that no process follows, oldest first."""
    unfollowed = select(Run.id).where(*_unfollowed(now())).order_by(Run.created_at)
    return (await session.scalars(unfollowed.limit(_BATCH_SIZE))).all()


async def adopt(session: AsyncSession, run_ids: Sequence[str]) -> Sequence[str]:
    """Say that this process follows those of the runs that still no other process follows, and return them in order."""
    moment = now()
    mine = update(Run).where(Run.id.in_(run_ids), *_unfollowed(moment)).values(followed_until=moment + FOLLOWED_FOR)
    adopted = set(await session.scalars(mine.returning(Run.id).execution_options(synchronize_session=False)))
    return [run_id for run_id in run_ids if run_id in adopted]


def _unfollowed(moment: datetime) -> tuple[ColumnElement[bool], ...]:
    return Run.state.in_(_UNFINISHED), or_(Run.followed_until.is_(None), Run.followed_until < moment)


async def _set_followed_until(session: AsyncSession, run_ids: Sequence[str], until: datetime | None) -> None:
    for start in range(0, len(run_ids), _BATCH_SIZE):
        some = update(Run).where(Run.id.in_(run_ids[start : start + _BATCH_SIZE]), Run.state.in_(_UNFINISHED))
        await session.execute(some.values(followed_until=until).execution_options(synchronize_session=False))
