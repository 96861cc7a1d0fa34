"""Deletes old output. The run, its code and its outcome are kept, and a notice explains the deletion.

Events are deleted in steps, each a short transaction. The first step replaces the last event before ``finished`` with
the notice; the last step marks the run as pruned. A page that reads the run in between shows the notice and the
outcome: it ignores events after a gap in the numbers, except for the notice. XP never depends on stored events.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from sqlalchemy import ColumnElement, case, false, func, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app import i18n
from app.accounts.models import Account
from app.db import Database, UtcDateTime, advisory_lock, delete_batch, now
from app.runs.models import EVENT_ROW_BYTES, RUN_ROW_BYTES, Run, RunEvent, RunState
from app.runs.status_labels import deletion_text
from runners.wire.protocol import NoticeEvent

TRIES_KEPT = 50
"""The latest judgements of each exercise, which are deleted last."""
_ROW_BATCH_SIZE = 500
_RUN_BATCH_SIZE = 50
_TARGET_FILL = 0.9
"""Making room frees space down to this share of the quota, so that not every batch of output has to make room."""


class DeletionReason(StrEnum):
    """Why output was deleted; the notice's code."""

    age = "output-expired"
    quota = "output-over-quota"


async def stored_bytes_of(session: AsyncSession, learner: str) -> int:
    """The space that all runs of a learner take in the database. Reads only an index."""
    return int(await session.scalar(select(func.sum(Run.stored_bytes)).where(Run.learner_id == learner)) or 0)


async def make_room(db: Database, learner: str, most: int, needed: int = 0) -> int:
    """Prune a learner's runs until ``needed`` more bytes fit into ``most``. Returns the bytes in use afterwards.

    Deletes the output of superseded runs first, then that of the latest run of each cell, oldest first in both groups.
    If that frees too little, deletes superseded runs completely. Never touches unfinished runs or the newest run.
    A cell's judgements are a group of their own. Learners can open their tries again, so the latest ``TRIES_KEPT`` of
    each exercise are deleted completely only if nothing else is left. What a pass has earned stays in the ledger.
    """
    async with db.session() as session:
        kept = await stored_bytes_of(session, learner)
    more = kept + needed > most
    while more:
        async with db.writing() as session:
            more = await make_room_step(session, learner, int(most * _TARGET_FILL) - needed)
        async with db.session() as session:
            kept = await stored_bytes_of(session, learner)
    return kept


async def make_room_step(session: AsyncSession, learner: str, most: int) -> bool:
    """One step of ``make_room``, until ``most`` bytes are in use. True if another step may free more."""
    await lock_pruning(session)
    excess = await stored_bytes_of(session, learner) - most
    output: list[str] = []
    whole: list[str] = []
    for run_id, size, pruned in await _next_to_prune(session, learner) if excess > 0 else ():
        if excess <= 0:
            break
        (whole if pruned else output).append(run_id)
        excess -= size
    await prune_output(session, output, DeletionReason.quota)
    await delete_runs(session, whole)
    return bool(output or whole)


async def prune_output(session: AsyncSession, run_ids: Sequence[str], reason: DeletionReason) -> int:
    """Delete the output of finished runs, at most 500 events. Returns the bytes freed so far."""
    rows, freed = _ROW_BATCH_SIZE, 0
    for run_id in run_ids:
        if rows > 0:
            written, bytes_of_run = await _prune_one(session, run_id, reason, rows)
            rows, freed = rows - written, freed + bytes_of_run
    return freed


async def delete_runs(session: AsyncSession, run_ids: Sequence[str]) -> int:
    """Delete pruned runs completely. Returns the bytes freed."""
    if not run_ids:
        return 0
    some = Run.id.in_(run_ids)
    freed = await session.scalar(select(func.sum(Run.stored_bytes)).where(some))
    await delete_batch(session, RunEvent, _ROW_BATCH_SIZE, RunEvent.run_id.in_(run_ids))  # two events of each are left
    await delete_batch(session, Run, _ROW_BATCH_SIZE, some)
    return int(freed or 0)


async def lock_pruning(session: AsyncSession) -> None:
    """Let only this transaction prune until it ends."""
    await advisory_lock(session, "pruning")
    if session.get_bind().dialect.name == "sqlite":  # an update takes its write lock, even if it matches no row
        await session.execute(update(Run).where(false()).values(pruned_at=None))


def is_visitor_run() -> ColumnElement[bool]:
    """Condition for runs of visitors."""
    return Run.learner_id.not_in(select(Account.learner_id))


async def _next_to_prune(session: AsyncSession, learner: str) -> Sequence[tuple[str, int, bool]]:
    """The runs to prune next: (ID, size, whether the output is already deleted)."""
    newest_first = (Run.created_at.desc(), Run.id.desc())
    of_cell = func.row_number().over(partition_by=(Run.lesson, Run.cell, Run.judgement), order_by=newest_first)
    of_all = func.row_number().over(order_by=newest_first)
    pruned = Run.pruned_at.is_not(None).label("pruned")
    columns = (Run.id, Run.stored_bytes, Run.state, Run.judgement, pruned, Run.created_at)
    mine = select(*columns, of_cell.label("of_cell"), of_all.label("of_all")).where(Run.learner_id == learner)
    ranked = mine.subquery().c
    superseded = ranked.of_cell > 1
    kept_try = ranked.judgement & (ranked.of_cell <= TRIES_KEPT)
    turn = case((superseded & ~ranked.pruned, 0), (~ranked.pruned, 1), (~kept_try, 2), else_=3)
    some = select(ranked.id, ranked.stored_bytes, ranked.pruned).where(
        ranked.state == RunState.finished, ranked.of_all > 1, superseded | ~ranked.pruned
    )
    rows = await session.execute(some.order_by(turn, ranked.created_at, ranked.id).limit(_RUN_BATCH_SIZE))
    return [(run_id, size, bool(pruned)) for run_id, size, pruned in rows]


async def _prune_one(session: AsyncSession, run_id: str, reason: DeletionReason, most: int) -> tuple[int, int]:
    """Delete at most ``most`` events of a run. Returns the rows written and, once all are gone, the bytes freed."""
    unpruned = (Run.id == run_id, Run.state == RunState.finished, Run.pruned_at.is_(None))
    columns = (
        Run.code,
        Run.last_seq,
        Run.stored_bytes,
        func.coalesce(Run.finished_at, Run.created_at, type_=UtcDateTime),
    )
    row = (await session.execute(select(*columns).where(*unpruned))).one_or_none()
    if row is None:
        return 0, 0
    code, last_seq, before, ended_at = row
    gone = 0
    if last_seq > 2:  # otherwise the run printed nothing between its first and last event
        await _write_notice(session, run_id, last_seq - 1, reason, (now() - ended_at).days)
        earlier = (RunEvent.run_id == run_id, RunEvent.seq < last_seq - 1)
        gone = await delete_batch(session, RunEvent, most, *earlier)
        if gone >= most:
            return gone, 0
    payloads = await session.scalars(select(RunEvent.payload).where(RunEvent.run_id == run_id))
    after = RUN_ROW_BYTES + len(code.encode()) + sum(EVENT_ROW_BYTES + len(payload.encode()) for payload in payloads)
    await session.execute(update(Run).where(*unpruned).values(stored_bytes=after, pruned_at=now()))
    return gone + 1, before - after


async def _write_notice(session: AsyncSession, run_id: str, seq: int, reason: DeletionReason, days: int) -> None:
    values: dict[str, str | int | float] = {"days": days} if reason is DeletionReason.age else {}
    with i18n.use_language(i18n.DEFAULT_LANGUAGE):
        text = deletion_text(reason, values)
    notice = NoticeEvent(seq=seq, at_ms=0, code=reason, values=values, text=text)
    place = update(RunEvent).where(RunEvent.run_id == run_id, RunEvent.seq == seq)
    await session.execute(place.values(kind=notice.kind, payload=notice.model_dump_json()))
