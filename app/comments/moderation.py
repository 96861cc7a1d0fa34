"""Reports of comments, and the actions of instructors. These functions flush; the caller commits."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account
from app.comments import queries
from app.comments.counters import change_state, clear_answer, increment_counters, insert_if_absent, lock_and_refresh
from app.comments.errors import (
    CommentNotFound,
    ModerationConflict,
    OwnCommentForbidden,
    ReasonRequired,
    ReportLimitReached,
)
from app.comments.models import Comment, CommentReport, CommentState
from app.comments.permissions import Viewer
from app.comments.recipients import notify_recipients
from app.db import now
from app.notifications.models import Notification, NotificationKind
from app.notifications.service import notify, withdraw_emails
from app.web.user_text import clean_text

MAX_REASON_CHARACTERS = 500
MAX_REPORTS_PER_DAY = 20
"""Per account."""
_ONE_DAY = timedelta(days=1)


async def report_comment(session: AsyncSession, account: Account, comment_id: str, reason: str) -> Comment:
    """Report a comment to the instructors; a second report by the same account replaces the first."""
    comment = await queries.get_comment(session, Viewer.of(account), comment_id)
    if comment.author_id == account.id:
        raise OwnCommentForbidden
    await _lock_shown_comment(session, comment)
    reason = _clean_reason(reason)
    lately = select(CommentReport.comment_id).where(
        CommentReport.account_id == account.id, CommentReport.reported_at > now() - _ONE_DAY
    )
    if len((await session.scalars(lately.limit(MAX_REPORTS_PER_DAY))).all()) == MAX_REPORTS_PER_DAY:
        raise ReportLimitReached(most=MAX_REPORTS_PER_DAY)
    own = {"comment_id": comment.id, "account_id": account.id}
    if await insert_if_absent(
        session, CommentReport, {**own, "reason": reason, "reported_at": now(), "resolved": False}
    ):
        await increment_counters(session, comment.id, report_count=1)
    else:
        await session.execute(update(CommentReport).filter_by(**own).values(reason=reason, reported_at=now()))
    return comment


async def set_pinned(session: AsyncSession, instructor: Account, comment_id: str, *, on: bool) -> Comment:
    """Pin a thread to the top of its list, or unpin it."""
    comment = await queries.get_comment(session, Viewer.of(instructor), comment_id)
    if comment.thread_id is not None:
        raise CommentNotFound
    await _lock_shown_comment(session, comment)
    comment.pinned = on
    await session.flush()
    return comment


async def set_answer(session: AsyncSession, instructor: Account, comment_id: str, *, on: bool) -> Comment:
    """Mark a reply as the answer of its thread, or remove the mark."""
    comment = await queries.get_comment(session, Viewer.of(instructor), comment_id)
    if comment.thread_id is None:
        raise CommentNotFound
    await _lock_shown_comment(session, comment)
    root = await session.get_one(Comment, comment.thread_id)
    root.answer_id = comment.id if on else None
    await session.flush()
    if on and root.author_id not in (None, comment.author_id):
        await notify(session, [root.author_id], NotificationKind.answered, comment.id, instructor.id)
    return comment


async def hide_comment(session: AsyncSession, instructor: Account, comment_id: str, reason: str) -> Comment:
    """Hide a comment; its author can read the reason. Resolves its reports and removes the mark as an answer."""
    comment = await queries.get_comment(session, Viewer.of(instructor), comment_id)
    await change_state(
        session, comment, CommentState.hidden, reason=_clean_reason(reason), pinned=False, **_moderated_by(instructor)
    )
    await clear_answer(session, comment)
    await _settle_reports(session, comment)
    await withdraw_emails(session, Notification.subject == comment.id)
    return comment


async def approve_comment(
    session: AsyncSession, instructor: Account, comment_id: str, edits: int | None = None
) -> Comment:
    """Approve a held comment, or restore a hidden one. ``edits`` is its edit count when the instructor read it.

    Raises:
        ModerationConflict: it was edited since, and nobody has read that text.
    """
    comment = await queries.get_comment(session, Viewer.of(instructor), comment_id)
    await lock_and_refresh(session, comment)
    if edits not in (None, comment.edit_count):
        raise ModerationConflict
    if comment.state in (CommentState.held, CommentState.hidden):
        await change_state(session, comment, CommentState.shown, reason="", **_moderated_by(instructor))
        await notify_recipients(session, comment)
    return comment


async def dismiss_reports(session: AsyncSession, instructor: Account, comment_id: str) -> Comment:
    """Resolve the reports of a comment without hiding it."""
    comment = await queries.get_comment(session, Viewer.of(instructor), comment_id)
    await _settle_reports(session, comment)
    return comment


async def _lock_shown_comment(session: AsyncSession, comment: Comment) -> None:
    """Lock a comment so that it cannot be deleted meanwhile. Raises CommentNotFound if it is not shown."""
    await lock_and_refresh(session, comment)
    if comment.state != CommentState.shown:
        raise CommentNotFound


async def _settle_reports(session: AsyncSession, comment: Comment) -> None:
    await session.execute(update(CommentReport).where(CommentReport.comment_id == comment.id).values(resolved=True))
    await session.execute(update(Comment).where(Comment.id == comment.id).values(report_count=0))


def _clean_reason(text: str) -> str:
    if not text.strip() or len(text) > MAX_REASON_CHARACTERS:
        raise ReasonRequired(most=MAX_REASON_CHARACTERS)
    return clean_text(text, MAX_REASON_CHARACTERS)


def _moderated_by(instructor: Account) -> dict[str, Any]:
    return {"moderated_by": instructor.id, "moderated_at": now()}
