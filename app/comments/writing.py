"""Writing comments, changing them and taking them back. The verbs flush; the caller commits."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, replace
from datetime import timedelta

from sqlalchemy import delete, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app import i18n
from app.accounts.models import Account, Role
from app.comments import listing, markdown, pace
from app.comments.audience import tell, tell_of_change
from app.comments.counters import add_once, alone_at, count, move, rows, unanswer
from app.comments.errors import ChangedMeanwhile, CommentUnknown, EditedTooOften, NotYours, ThreadClosed, TooFast
from app.comments.models import Comment, CommentReaction, Report, State, Version
from app.comments.rendering import html_of
from app.comments.sight import Viewer
from app.db import growing_id, now, one_at_a_time
from app.notifications.service import withdraw
from app.web.text import tidy

MOST_CHARACTERS = 10_000
MOST_EDITS = 50
_AGAIN = timedelta(minutes=10)
"""For so long the same words of one author at one place are the same comment."""
_LATEST = 10


@dataclass(frozen=True, slots=True)
class Draft:
    """What somebody wants to say. ``key`` comes from the form and is the same when it is sent twice."""

    lesson: str
    cell: str
    thread_id: str | None
    text: str
    key: str
    language: str


async def write(session: AsyncSession, author: Account, draft: Draft, hold_first: int = 0) -> Comment:
    """Store a comment, or find the one that the same form has stored already.

    Raises:
        TextEmpty, TextTooLong, NotText: the text cannot be kept.
        TooFast: the author has written too much lately.
        CommentUnknown, ThreadClosed: it answers what is not there.
    """
    text = tidy(draft.text, MOST_CHARACTERS)
    await one_at_a_time(session, f"comments of {author.id}")
    key = _key(draft, text)
    if (before := await _of_key(session, author, key)) is not None:
        if before.state != State.deleted:
            return before
        key = _key(replace(draft, key=""), text)  # taken back since, and now said anew with the back button
    if (again := await _said_again(session, author, draft, text)) is not None:
        return again
    lesson, cell = await _place_of(session, author, draft)
    await _check_pace(session, author)
    await alone_at(session, lesson, cell)
    values = {
        "id": growing_id(),
        "lesson": lesson,
        "cell": cell,
        "thread_id": draft.thread_id,
        "author_id": author.id,
        "key": key,
        "source": text,
        "html": await html_of(session, text),
        "renderer": markdown.VERSION,
        "language": draft.language,
        "state": State.held if await _waits(session, author, hold_first) else State.shown,
        "created_at": now(),
    }
    added = await add_once(session, Comment, values)
    comment = await _of_key(session, author, key)
    if comment is None:
        raise CommentUnknown
    if added and comment.state == State.shown:
        await count(session, comment, 1)
        await tell(session, comment)
    return comment


async def change(session: AsyncSession, author: Account, comment_id: str, text: str, edits: int) -> Comment:
    """Replace the text; the one before is kept as a version. ``edits`` is how often it was changed when it was read.

    Raises:
        ChangedMeanwhile: it says something else by now.
    """
    comment = await _own(session, author, comment_id)
    text = tidy(text, MOST_CHARACTERS)
    if text == comment.source:
        return comment
    if edits != comment.edits:
        raise ChangedMeanwhile
    if comment.edits >= MOST_EDITS:
        raise EditedTooOften(most=MOST_EDITS)
    version = Version(
        comment_id=comment.id,
        number=comment.edits,
        source=comment.source,
        written_at=comment.edited_at or comment.created_at,
    )
    changed = await session.execute(
        update(Comment)
        .where(Comment.id == comment.id, Comment.edits == edits)
        .values(
            source=text,
            html=await html_of(session, text),
            renderer=markdown.VERSION,
            edits=edits + 1,
            edited_at=now(),
        )
        .execution_options(synchronize_session=False)
    )
    if rows(changed) != 1:
        raise ChangedMeanwhile
    session.add(version)
    await session.flush()
    await session.refresh(comment)
    if comment.state == State.shown:
        await tell_of_change(session, comment, version.source)
    return comment


async def remove(session: AsyncSession, author: Account, comment_id: str) -> Comment:
    """Take a comment back: its text and what it said before are gone; a stub stays where others have answered."""
    comment = await _own(session, author, comment_id)
    await move(
        session, comment, State.deleted, source="", html="", pinned=False, helpful=0, same=0, thanks=0, reports=0
    )
    for table in (Version, CommentReaction, Report):
        await session.execute(delete(table).where(table.comment_id == comment.id))
    await withdraw(session, comment.id)
    await unanswer(session, comment)
    return comment


def _key(draft: Draft, text: str) -> str:
    """Another text from the same form, as after the browser's back button, is another comment."""
    parts = (draft.key or secrets.token_hex(16), draft.lesson, draft.cell, draft.thread_id or "", text)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()


async def _of_key(session: AsyncSession, author: Account, key: str) -> Comment | None:
    return await session.scalar(select(Comment).where(Comment.author_id == author.id, Comment.key == key))


async def _said_again(session: AsyncSession, author: Account, draft: Draft, text: str) -> Comment | None:
    """The same words at the same place a moment ago: the back button shows the form anew, with another key."""
    lately = select(Comment).where(Comment.author_id == author.id).order_by(Comment.id.desc()).limit(_LATEST)
    for comment in await session.scalars(lately):
        same = comment.source == text and comment.thread_id == draft.thread_id and now() - comment.created_at < _AGAIN
        here = draft.thread_id is not None or (comment.lesson, comment.cell) == (draft.lesson, draft.cell)
        if same and here and comment.state != State.deleted:
            return comment
    return None


async def _place_of(session: AsyncSession, author: Account, draft: Draft) -> tuple[str, str]:
    """Lesson and cell: a reply belongs where its thread is."""
    if draft.thread_id is None:
        return draft.lesson, draft.cell
    root = await listing.get(session, Viewer.of(author), draft.thread_id)
    if root.thread_id is not None or root.state != State.shown:
        raise ThreadClosed
    return root.lesson, root.cell


async def _own(session: AsyncSession, author: Account, comment_id: str) -> Comment:
    comment = await listing.get(session, Viewer.of(author), comment_id)
    if comment.author_id != author.id:
        raise NotYours
    if comment.state == State.deleted:
        raise CommentUnknown
    return comment


async def _check_pace(session: AsyncSession, author: Account) -> None:
    at = now()
    latest = select(Comment.created_at).where(Comment.author_id == author.id).order_by(Comment.id.desc())
    written = list(await session.scalars(latest.limit(pace.MOST_KNOWN)))
    wait = pace.wait(written, at, pace.rules_for(at - author.created_at))
    if wait:
        raise TooFast(wait=i18n.length(wait))


async def _waits(session: AsyncSession, author: Account, hold_first: int) -> bool:
    """Whether an instructor looks at it first: until ``hold_first`` of a learner's comments are in the open."""
    if not hold_first or author.role != Role.learner:
        return False
    shown = select(Comment.id).where(Comment.author_id == author.id, Comment.state == State.shown).limit(hold_first)
    return len((await session.scalars(shown)).all()) < hold_first
