"""An account's data in comments: exported completely, and anonymized when the account is deleted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account
from app.comments.models import Comment, CommentReaction, CommentReport, CommentState, CommentVersion, ReactionKind
from app.db import stream_scalars

_EXPORTED_COLUMNS = ("id", "lesson", "cell", "thread_id", "source", "language", "state", "created_at", "edited_at")
_VERSION_COLUMNS = ("comment_id", "number", "source", "written_at")
_REPORT_COLUMNS = ("comment_id", "reason", "reported_at")


async def export_comments(session: AsyncSession, account: Account) -> AsyncIterator[Mapping[str, Any]]:
    """The account's comments with their earlier versions, its reactions and its reports."""
    mine = Comment.author_id == account.id
    async for comment in stream_scalars(session, select(Comment).where(mine).order_by(Comment.id)):
        yield {"kind": "comment", **{name: getattr(comment, name) for name in _EXPORTED_COLUMNS}}
    versions = select(CommentVersion).join(Comment, Comment.id == CommentVersion.comment_id).where(mine)
    async for version in stream_scalars(session, versions.order_by(CommentVersion.comment_id, CommentVersion.number)):
        yield {"kind": "comment_version", **{name: getattr(version, name) for name in _VERSION_COLUMNS}}
    async for reaction in stream_scalars(
        session, select(CommentReaction).where(CommentReaction.account_id == account.id)
    ):
        about, kind = reaction.comment_id, reaction.kind
        yield {"kind": "comment_reaction", "comment_id": about, "reaction": kind, "created_at": reaction.created_at}
    async for report in stream_scalars(session, select(CommentReport).where(CommentReport.account_id == account.id)):
        yield {"kind": "comment_report", **{name: getattr(report, name) for name in _REPORT_COLUMNS}}


async def erase_comments(session: AsyncSession, account: Account) -> None:
    """Delete the account's reactions, reports, comments that nobody approved, and earlier versions of the others.

    Those stay as they read now, without an author, so that threads make sense.
    """
    kinds = select(CommentReaction.kind).filter_by(account_id=account.id).distinct()
    for kind in map(ReactionKind, (await session.scalars(kinds)).all()):
        of_kind = select(CommentReaction.comment_id).filter_by(account_id=account.id, kind=kind)
        await _decrement_counter(session, kind.counter, of_kind.scalar_subquery())
    unresolved = select(CommentReport.comment_id).where(CommentReport.account_id == account.id, ~CommentReport.resolved)
    await _decrement_counter(session, "report_count", unresolved.scalar_subquery())
    for table in (CommentReaction, CommentReport):
        await session.execute(delete(table).where(table.account_id == account.id))
    mine = Comment.author_id == account.id
    written = select(Comment.id).where(mine).scalar_subquery()
    await session.execute(delete(CommentVersion).where(CommentVersion.comment_id.in_(written)))
    held = update(Comment).where(mine, Comment.state == CommentState.held)
    await session.execute(held.values(state=CommentState.deleted, source="", html=""))
    await session.execute(update(Comment).where(mine).values(author_id=None, edit_count=0))


async def _decrement_counter(session: AsyncSession, counter: str, comments: Any) -> None:
    lowered = update(Comment).where(Comment.id.in_(comments)).values({counter: getattr(Comment, counter) - 1})
    await session.execute(lowered.execution_options(synchronize_session=False))
