"""A learner's runs, drafts and scratch cells: moved to an account, exported, or deleted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, cast

from fastapi import FastAPI
from sqlalchemy import CursorResult, and_, delete, select, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased

from app.accounts.models import Account
from app.accounts.visitor_retention import RetentionRule
from app.db import advisory_lock, delete_batch, stream_scalars
from app.runs.models import CodeDraft, Run, RunEvent, ScratchCell
from app.runs.scratch_cells import MAX_CELLS_PER_PAGE, new_scratch_name
from app.runs.service import session_owner
from app.web.dependencies import RUNNER
from runners.wire.client import RequestRefused, RunnerError

_FETCH_SIZE = 100
_PURGE_BATCH_SIZE = 50
_EXPORTED_NAMES = (
    "id",
    "lesson",
    "cell",
    "topology",
    "keras",
    "language",
    "created_at",
    "outcome",
    "duration_ms",
    "code",
)
_EXPORTED_SCRATCH_NAMES = ("lesson", "name", "kind", "title", "source", "anchor", "created_at", "updated_at")
_EXPORTED_COLUMNS = {name: getattr(Run, name) for name in _EXPORTED_NAMES} | {"output_deleted_at": Run.pruned_at}


async def move_runs(session: AsyncSession, from_learner: str, to_learner: str) -> Mapping[str, int]:
    """Move all runs from one learner to another. Returns how many there were."""
    await advisory_lock(session, f"runs of {from_learner}")
    theirs = update(Run).where(Run.learner_id == from_learner)
    moved = await session.execute(theirs.values(learner_id=to_learner))
    return {"runs": cast(CursorResult[Any], moved).rowcount}


async def export_runs(session: AsyncSession, account: Account) -> AsyncIterator[Mapping[str, Any]]:
    """All runs with their code, in order. Their output is on their pages until ``output_deleted_at``, if set."""
    last = ""
    while True:
        mine = select(*_EXPORTED_COLUMNS.values()).where(Run.learner_id == account.learner_id, Run.id > last)
        rows = (await session.execute(mine.order_by(Run.id).limit(_FETCH_SIZE))).all()
        for row in rows:
            yield dict(zip(_EXPORTED_COLUMNS, row, strict=True))
        if len(rows) < _FETCH_SIZE:
            return
        last = rows[-1][0]


async def export_code_drafts(session: AsyncSession, account: Account) -> AsyncIterator[Mapping[str, Any]]:
    """The account's edits of cells. They are deleted with the account's row."""
    mine = select(CodeDraft).where(CodeDraft.account_id == account.id, CodeDraft.code.is_not(None))
    async for draft in stream_scalars(session, mine.order_by(CodeDraft.lesson, CodeDraft.cell)):
        yield {"lesson": draft.lesson, "cell": draft.cell, "code": draft.code, "updated_at": draft.updated_at}


async def move_scratch_cells(session: AsyncSession, from_learner: str, to_learner: str) -> Mapping[str, int]:
    """Move all scratch cells from one learner to another, behind those that are there already."""
    for learner in sorted((from_learner, to_learner)):
        await advisory_lock(session, f"scratch cells of {learner}")
    await _rename_those_of_both(session, from_learner, to_learner)
    theirs = update(ScratchCell).where(ScratchCell.learner_id == from_learner)
    behind = ScratchCell.position + MAX_CELLS_PER_PAGE
    values = theirs.values(learner_id=to_learner, position=behind)
    moved = await session.execute(values.execution_options(synchronize_session=False))
    return {"cells": cast(CursorResult[Any], moved).rowcount}


async def _rename_those_of_both(session: AsyncSession, from_learner: str, to_learner: str) -> None:
    """Both have a cell with the same name if it was deleted in two windows, and restored in one before and in the other
    after signing out."""
    there = aliased(ScratchCell)
    same = and_(there.learner_id == to_learner, there.lesson == ScratchCell.lesson, there.name == ScratchCell.name)
    theirs = select(ScratchCell).join(there, same).where(ScratchCell.learner_id == from_learner)
    for cell in await session.scalars(theirs):
        cell.name = new_scratch_name()
    await session.flush()


async def export_scratch_cells(session: AsyncSession, account: Account) -> AsyncIterator[Mapping[str, Any]]:
    """The cells that the learner has added to lessons and to the playground, page by page, in their order."""
    mine = select(ScratchCell).where(ScratchCell.learner_id == account.learner_id)
    order = (ScratchCell.lesson, ScratchCell.anchor, ScratchCell.position, ScratchCell.name)
    async for cell in stream_scalars(session, mine.order_by(*order)):
        yield {name: getattr(cell, name) for name in _EXPORTED_SCRATCH_NAMES}


async def erase_scratch_cells(session: AsyncSession, account: Account) -> None:
    await session.execute(delete(ScratchCell).where(ScratchCell.learner_id == account.learner_id))


async def erase_runs(session: AsyncSession, account: Account) -> None:
    """Delete all of an account's runs and their output. The follower of one that has not finished ends it."""
    mine = select(Run.id).where(Run.learner_id == account.learner_id)
    await session.execute(delete(RunEvent).where(RunEvent.run_id.in_(mine)))
    await session.execute(delete(Run).where(Run.learner_id == account.learner_id))


async def end_sessions(app: FastAPI, learner: str) -> None:
    """End the sessions of a learner whose account was deleted, with what they hold in memory and in files."""
    runner = RUNNER.get(app)
    with suppress(RunnerError):  # a runner that is down has none
        for session in await runner.sessions_of(session_owner(learner)):
            with suppress(RequestRefused):  # it has ended by itself
                await runner.end(session.id)


async def purge_runs(session: AsyncSession, learner: str, before: datetime, most: int) -> int:
    """Delete old runs of a visitor with their output, at most that many rows. Returns how many."""
    theirs = select(Run.id).where(Run.learner_id == learner, Run.created_at < before)
    run_ids = (await session.scalars(theirs.limit(_PURGE_BATCH_SIZE))).all()
    gone = await delete_batch(session, RunEvent, most, RunEvent.run_id.in_(run_ids))
    if gone < most:
        gone += await delete_batch(session, Run, most - gone, Run.id.in_(run_ids))
    return gone


RETENTION_RULES = (
    RetentionRule(Run.learner_id, Run.created_at, purge_runs),
    RetentionRule(ScratchCell.learner_id, ScratchCell.updated_at),
)
