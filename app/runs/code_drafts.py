"""Drafts of the code of cells, which an account's browsers share. A browser replaces only the version it has seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select, tuple_, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account
from app.accounts.service import AccountDeleted
from app.db import dialect_insert, now
from app.runs.models import CodeDraft
from app.runs.service import check_code


@dataclass(frozen=True, slots=True)
class DraftChange:
    """A browser's change to the draft of a cell of a lesson (``course/slug``)."""

    lesson: str
    cell: str
    code: str | None
    """None if the cell was reset."""
    original_digest: str
    seen_version: int
    """The version that the browser has; 0 if it has none."""


async def load_drafts(session: AsyncSession, account: Account, lesson: str) -> Sequence[CodeDraft]:
    """The account's drafts of a lesson, with those of cells that were reset."""
    mine = select(CodeDraft).where(CodeDraft.account_id == account.id, CodeDraft.lesson == lesson)
    return (await session.scalars(mine.order_by(CodeDraft.cell))).all()


async def load_drafts_after(
    session: AsyncSession, account: Account, lesson: str, cell: str, most: int
) -> Sequence[CodeDraft]:
    """At most this many drafts, by lesson and cell, after that of this cell, without those of cells that were reset."""
    mine = select(CodeDraft).where(CodeDraft.account_id == account.id, CodeDraft.code.is_not(None))
    later = mine.where(tuple_(CodeDraft.lesson, CodeDraft.cell) > (lesson, cell))
    return (await session.scalars(later.order_by(CodeDraft.lesson, CodeDraft.cell).limit(most))).all()


async def save_draft(session: AsyncSession, account: Account, change: DraftChange) -> CodeDraft:
    """Store a change, unless another browser has changed the draft since.

    Returns the draft that is then stored, which may be that of the other browser. Sending a change again does no harm.

    Raises:
        CodeTooLong, InvalidCode: the code cannot be run.
        AccountDeleted: the account was deleted during this request.
    """
    if change.code is not None:
        check_code(change.code)
    key = {"account_id": account.id, "lesson": change.lesson, "cell": change.cell}
    values = {"code": change.code, "original_digest": change.original_digest, "updated_at": now()}
    # Both statements check and write at once, so two browsers cannot both replace the same version.
    seen = update(CodeDraft).filter_by(**key, version=change.seen_version)
    await session.execute(seen.values(**values, version=CodeDraft.version + 1))
    try:
        first = dialect_insert(session, CodeDraft).values(**key, **values, version=1)
        await session.execute(first.on_conflict_do_nothing())
    except IntegrityError as e:
        raise AccountDeleted from e
    return (await session.scalars(select(CodeDraft).filter_by(**key))).one()
