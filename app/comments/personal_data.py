"""An account's data in comments: exported completely, and anonymized when the account is deleted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account
from app.comments.models import Comment, CommentReaction, CommentReport, CommentVersion, ReactionKind
from app.db import stream_scalars

_EXPORTED_COLUMNS = ("id", "lesson", "cell", "thread_id", "source", "language", "state", "created_at", "edited_at")


async def export_comments(session: AsyncSession, account: Account) -> AsyncIterator[Mapping[str, Any]]:
    """The account's comments with their earlier versions, its reactions and its reports."""
    mine = Comment.author_id == account.id
    async for comment in stream_scalars(session, select(Comment).where(mine).order_by(Comment.id)):
        yield {"kind": "comment", **{name: getattr(comment, name) for name in _EXPORTED_COLUMNS}}
    versions = select(CommentVersion).join(Comment, Comment.id == CommentVersion.comment_id).where(mine)
    async for version in stream_scalars(session, versions.order_by(CommentVersion.comment_id, CommentVersion.number)):
        shown = ("comment_id", "number", "source", "written_at")
        yield {"kind": "comment_version", **{name: getattr(version, name) for name in shown}}
    async for reaction in stream_scalars(
        session, select(CommentReaction).where(CommentReaction.account_id == account.id)
    ):
        yield {
            "kind": "comment_reaction",
            "comment_id": reaction.comment_id,
            "reaction": reaction.kind,
            "created_at": reaction.created_at,
        }
    async for report in stream_scalars(session, select(CommentReport).where(CommentReport.account_id == account.id)):
        yield {
            "kind": "comment_report",
            "comment_id": report.comment_id,
            "reason": report.reason,
            "reported_at": report.reported_at,
        }


async def erase_comments(session: AsyncSession, account: Account) -> None:
    """Delete the account's reactions and reports. Its comments stay, without an author, so that threads make sense."""
    for kind in await _reaction_kinds(session, account):
        of_kind = select(CommentReaction.comment_id).filter_by(account_id=account.id, kind=kind)
        await _decrement_counter(session, kind.counter, of_kind.scalar_subquery())
    unresolved = select(CommentReport.comment_id).where(CommentReport.account_id == account.id, ~CommentReport.resolved)
    await _decrement_counter(session, "report_count", unresolved.scalar_subquery())
    for table in (CommentReaction, CommentReport):
        await session.execute(delete(table).where(table.account_id == account.id))
    await session.execute(update(Comment).where(Comment.author_id == account.id).values(author_id=None))


async def _reaction_kinds(session: AsyncSession, account: Account) -> list[ReactionKind]:
    kinds = select(CommentReaction.kind).filter_by(account_id=account.id).distinct()
    return [ReactionKind(kind) for kind in await session.scalars(kinds)]


async def _decrement_counter(session: AsyncSession, counter: str, comments: Any) -> None:
    lowered = update(Comment).where(Comment.id.in_(comments)).values({counter: getattr(Comment, counter) - 1})
    await session.execute(lowered.execution_options(synchronize_session=False))
