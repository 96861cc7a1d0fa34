"""Merging a visitor's work into an account: once, completely, and in one transaction.

A row in ``merged_visitors`` decides: the transaction that inserts it merges, every other one finds it there. A new
account takes over the visitor's ID, so live sessions continue. For an existing account, each feature's merger moves the
visitor's rows to it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends
from sqlalchemy import false, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account, MergedVisitor
from app.db import advisory_lock, dialect_insert, now
from app.web.dependencies import AppKey

Merger = Callable[[AsyncSession, str, str], Awaitable[Mapping[str, int]]]
"""Moves a feature's rows from one learner to another. Returns how many of each kind it moved: ``{"runs": 12}``."""
MERGERS = AppKey[Sequence[Merger]]("mergers")
MergersDep = Annotated[Sequence[Merger], Depends(MERGERS.from_request)]


@dataclass(frozen=True, slots=True)
class MergeResult:
    adopted: bool = False
    """Whether the account took over the visitor's ID."""
    moved_counts: Mapping[str, int] = field(default_factory=dict)


async def merge_visitor(
    session: AsyncSession, visitor_id: str, account: Account, mergers: Sequence[Merger], *, adopt: bool = False
) -> MergeResult:
    """Merge the visitor into the account, unless that is done. ``adopt``: the account is new and has no rows yet."""
    await advisory_lock(session, f"learner {account.id}")
    await lock_visitor(session, visitor_id)
    if not await _record_merge(session, visitor_id, account.id):
        return MergeResult()
    if adopt:
        account.learner_id = visitor_id
        await session.flush()
        return MergeResult(adopted=True)
    moved_counts: dict[str, int] = {}
    for move in mergers:
        for kind, count in (await move(session, visitor_id, account.learner_id)).items():
            moved_counts[kind] = moved_counts.get(kind, 0) + count
    return MergeResult(moved_counts={kind: count for kind, count in moved_counts.items() if count})


async def lock_visitor(session: AsyncSession, visitor_id: str) -> None:
    """Until the transaction ends, keep others from merging or deleting the visitor."""
    await advisory_lock(session, f"visitor {visitor_id}")
    if session.get_bind().dialect.name == "sqlite":  # an update takes its write lock, even if it matches no row
        await session.execute(update(MergedVisitor).where(false()).values(account_id=""))


async def resolve_learner_id(session: AsyncSession, learner_id: str) -> str:
    """The account's learner ID if this visitor was merged into an account, else ``learner_id``."""
    became = select(Account.learner_id).join(MergedVisitor, MergedVisitor.account_id == Account.id)
    return await session.scalar(became.where(MergedVisitor.visitor_id == learner_id)) or learner_id


async def merged_visitor_ids(session: AsyncSession, learner_id: str) -> Sequence[str]:
    """The visitors that were merged into the account with this learner ID."""
    merged = select(MergedVisitor.visitor_id).join(Account, Account.id == MergedVisitor.account_id)
    return (await session.scalars(merged.where(Account.learner_id == learner_id))).all()


async def _record_merge(session: AsyncSession, visitor_id: str, account_id: str) -> bool:
    row = dialect_insert(session, MergedVisitor).values(visitor_id=visitor_id, account_id=account_id, merged_at=now())
    stored = await session.execute(row.on_conflict_do_nothing().returning(MergedVisitor.visitor_id))
    return stored.scalar_one_or_none() is not None
