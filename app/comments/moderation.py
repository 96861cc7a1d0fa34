"""Reports of comments, and what instructors do with comments. The verbs flush; the caller commits."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account
from app.comments import listing
from app.comments.audience import tell
from app.comments.counters import add, add_once, move, refresh_alone, unanswer
from app.comments.errors import CommentUnknown, NotYourOwn, ReadAgain, ReportedTooOften, WriteFirst
from app.comments.models import Comment, Report, State
from app.comments.sight import Viewer
from app.db import now
from app.notifications.models import Kind
from app.notifications.service import notify
from app.web.text import tidy

MOST_REASON = 500
MOST_REPORTS = 20
"""Of one account within a day."""
_A_DAY = timedelta(days=1)


async def report(session: AsyncSession, account: Account, comment_id: str, reason: str) -> Comment:
    """Tell the instructors that something is wrong with a comment; a second report takes the place of one's first."""
    comment = await listing.get(session, Viewer.of(account), comment_id)
    if comment.author_id == account.id:
        raise NotYourOwn
    await _still_shown(session, comment)
    reason = _reason(reason)
    lately = select(Report.comment_id).where(Report.account_id == account.id, Report.at > now() - _A_DAY)
    if len((await session.scalars(lately.limit(MOST_REPORTS))).all()) == MOST_REPORTS:
        raise ReportedTooOften(most=MOST_REPORTS)
    own = {"comment_id": comment.id, "account_id": account.id}
    if await add_once(session, Report, {**own, "reason": reason, "at": now(), "settled": False}):
        await add(session, comment.id, reports=1)
    else:
        await session.execute(update(Report).filter_by(**own).values(reason=reason, at=now()))
    return comment


async def pin(session: AsyncSession, instructor: Account, comment_id: str, *, on: bool) -> Comment:
    """Keep a thread on top of its list, or no longer."""
    comment = await listing.get(session, Viewer.of(instructor), comment_id)
    if comment.thread_id is not None:
        raise CommentUnknown
    await _still_shown(session, comment)
    comment.pinned = on
    await session.flush()
    return comment


async def answer(session: AsyncSession, instructor: Account, comment_id: str, *, on: bool) -> Comment:
    """Say that a reply answers what began its thread, or no longer."""
    comment = await listing.get(session, Viewer.of(instructor), comment_id)
    if comment.thread_id is None:
        raise CommentUnknown
    await _still_shown(session, comment)
    root = await session.get_one(Comment, comment.thread_id)
    root.answer_id = comment.id if on else None
    await session.flush()
    if on and root.author_id not in (None, comment.author_id):
        await notify(session, [root.author_id], Kind.answered, comment.id, instructor.id)
    return comment


async def hide(session: AsyncSession, instructor: Account, comment_id: str, reason: str) -> Comment:
    """Take a comment out of sight; its author can read why. Its reports are settled, and it answers nothing."""
    comment = await listing.get(session, Viewer.of(instructor), comment_id)
    await move(session, comment, State.hidden, reason=_reason(reason), pinned=False, **_by(instructor))
    await unanswer(session, comment)
    await _settle(session, comment)
    return comment


async def show(session: AsyncSession, instructor: Account, comment_id: str, edits: int | None = None) -> Comment:
    """Approve a comment that was held, or bring a hidden one back. ``edits`` is how often it was changed when read.

    Raises:
        ReadAgain: it says something else by now, which nobody has looked at.
    """
    comment = await listing.get(session, Viewer.of(instructor), comment_id)
    await refresh_alone(session, comment)
    if edits not in (None, comment.edits):
        raise ReadAgain
    if comment.state in (State.held, State.hidden):
        await move(session, comment, State.shown, reason="", **_by(instructor))
        await tell(session, comment)
    return comment


async def dismiss(session: AsyncSession, instructor: Account, comment_id: str) -> Comment:
    """Nothing is wrong with it: its reports are settled."""
    comment = await listing.get(session, Viewer.of(instructor), comment_id)
    await _settle(session, comment)
    return comment


async def _still_shown(session: AsyncSession, comment: Comment) -> None:
    """Whoever takes it back meanwhile waits. Raises CommentUnknown if somebody has."""
    await refresh_alone(session, comment)
    if comment.state != State.shown:
        raise CommentUnknown


async def _settle(session: AsyncSession, comment: Comment) -> None:
    await session.execute(update(Report).where(Report.comment_id == comment.id).values(settled=True))
    await session.execute(update(Comment).where(Comment.id == comment.id).values(reports=0))


def _reason(text: str) -> str:
    if not text.strip() or len(text) > MOST_REASON:
        raise WriteFirst(most=MOST_REASON)
    return tidy(text, MOST_REASON)


def _by(instructor: Account) -> dict[str, Any]:
    return {"moderated_by": instructor.id, "moderated_at": now()}
