"""Who is notified of new and edited comments, and notifying them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from app.comments.markdown import MAX_MENTIONS
from app.comments.models import Comment, CommentState
from app.comments.rendering import resolve_mentions
from app.notifications.models import NotificationKind
from app.notifications.service import notified_accounts, notify

_MAX_THREAD_AUTHORS = 200
"""Of the latest replies in a thread; their authors are notified of a new one."""


class RecipientReason(StrEnum):
    """Why somebody is notified of a comment."""

    mention = "mention"
    reply = "reply"


@dataclass(frozen=True, slots=True)
class Recipient:
    """Somebody to notify of a new comment."""

    account_id: str
    why: RecipientReason


async def notify_recipients(session: AsyncSession, comment: Comment) -> None:
    told = await find_recipients(session, comment)
    for why in RecipientReason:
        of_these = [one.account_id for one in told if one.why is why]
        await notify(session, of_these, NotificationKind(why), comment.id, comment.author_id)


async def notify_new_mentions(session: AsyncSession, comment: Comment, before: str) -> None:
    """Notify the people whom an edit newly mentions. Nobody is notified of the same comment twice.

    Across all edits, a comment notifies no more people than a new one could.
    """
    known = await notified_accounts(session, comment.id)
    left = MAX_MENTIONS - sum(kind == NotificationKind.mention for kind in known.values())
    passed_over = {*(await resolve_mentions(session, before)).values(), *known, comment.author_id}
    people = (await resolve_mentions(session, comment.source)).values()
    called = [account_id for account_id in people if account_id not in passed_over]
    await notify(session, called[: max(0, left)], NotificationKind.mention, comment.id, comment.author_id)


async def find_recipients(session: AsyncSession, comment: Comment) -> list[Recipient]:
    """The people mentioned in a new comment and the authors in its thread; each once, without its own author."""
    people = await resolve_mentions(session, comment.source)
    told = dict.fromkeys(people.values(), RecipientReason.mention)
    if comment.thread_id is not None:
        wrote = select(Comment.author_id).where(
            Comment.thread_id == comment.thread_id, Comment.state == CommentState.shown
        )
        latest = await session.scalars(wrote.order_by(Comment.id.desc()).limit(_MAX_THREAD_AUTHORS))
        began = await session.scalar(select(Comment.author_id).where(Comment.id == comment.thread_id))
        for account_id in filter(None, (began, *latest)):
            told.setdefault(account_id, RecipientReason.reply)
    told.pop(comment.author_id or "", None)
    return [Recipient(account_id, why) for account_id, why in told.items()]
