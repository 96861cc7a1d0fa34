"""Reactions to comments, and the XP for helpful ones. These functions flush; the caller commits."""

from __future__ import annotations

from sqlalchemy import delete
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account
from app.comments import queries
from app.comments.counters import affected_rows, increment_counters, insert_if_absent
from app.comments.errors import CommentNotFound, OwnCommentForbidden
from app.comments.models import Comment, CommentReaction, CommentState, ReactionKind
from app.comments.permissions import Viewer
from app.db import now
from app.progress.events import LearningEvent
from app.progress.ledger import Ledger

HELPFUL_XP = 20
"""For an account's first helpful comment."""


async def set_reaction(
    session: AsyncSession, account: Account, comment_id: str, kind: ReactionKind, *, on: bool
) -> Comment:
    """Add or remove a reaction. Idempotent."""
    comment = await queries.get_comment(session, Viewer.of(account), comment_id)
    if comment.state != CommentState.shown:
        raise CommentNotFound
    if comment.author_id == account.id:
        raise OwnCommentForbidden
    own = {"comment_id": comment.id, "account_id": account.id, "kind": kind}
    if on:
        changed = int(await insert_if_absent(session, CommentReaction, {**own, "created_at": now()}))
    else:
        changed = -affected_rows(await session.execute(delete(CommentReaction).filter_by(**own)))
    if changed:
        await increment_counters(session, comment.id, **{kind.counter: changed})
        await session.refresh(comment)
    return comment


async def award_helpful(session: AsyncSession, ledger: Ledger, comment: Comment) -> None:
    """Record in the ledger that a comment was marked as helpful or as an answer.

    Counts only once per author, and only while the author's account exists.
    """
    author = await session.get(Account, comment.author_id) if comment.author_id else None
    if author is not None:
        await ledger.award(session, author.learner_id, [LearningEvent("helpful", "first", HELPFUL_XP)])
