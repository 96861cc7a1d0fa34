"""Who is told of a comment, when it is new and when it has been changed, and telling them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from app.comments.markdown import MOST_MENTIONS
from app.comments.models import Comment, State
from app.comments.rendering import mentioned
from app.notifications.models import Kind
from app.notifications.service import notify, told_already

_MOST_TOLD = 200
"""Of the latest replies of a thread, whose authors are told of a new one."""


class Why(StrEnum):
    """Why somebody is told of a comment."""

    mention = "mention"
    reply = "reply"


@dataclass(frozen=True, slots=True)
class Told:
    """Somebody who is told of a new comment."""

    account_id: str
    why: Why


async def tell(session: AsyncSession, comment: Comment) -> None:
    """Tell those who are told of a new comment."""
    told = await told_of(session, comment)
    for why in Why:
        of_these = [one.account_id for one in told if one.why is why]
        await notify(session, of_these, Kind(why), comment.id, comment.author_id)


async def tell_of_change(session: AsyncSession, comment: Comment, before: str) -> None:
    """Tell those whom a comment mentions since it was changed. Nobody is told of it again.

    However often it is changed, a comment calls no more people in all than it could at once.
    """
    known = await told_already(session, comment.id)
    left = MOST_MENTIONS - sum(kind == Kind.mention for kind in known.values())
    passed_over = {*(await mentioned(session, before)).values(), *known, comment.author_id}
    people = (await mentioned(session, comment.source)).values()
    called = [account_id for account_id in people if account_id not in passed_over]
    await notify(session, called[: max(0, left)], Kind.mention, comment.id, comment.author_id)


async def told_of(session: AsyncSession, comment: Comment) -> list[Told]:
    """Who is told of a new comment: whom it mentions, and who wrote in its thread; each once, never its author."""
    people = await mentioned(session, comment.source)
    told = dict.fromkeys(people.values(), Why.mention)
    if comment.thread_id is not None:
        wrote = select(Comment.author_id).where(Comment.thread_id == comment.thread_id, Comment.state == State.shown)
        latest = await session.scalars(wrote.order_by(Comment.id.desc()).limit(_MOST_TOLD))
        began = await session.scalar(select(Comment.author_id).where(Comment.id == comment.thread_id))
        for account_id in filter(None, (began, *latest)):
            told.setdefault(account_id, Why.reply)
    told.pop(comment.author_id or "", None)
    return [Told(account_id, why) for account_id, why in told.items()]
