"""Creating, editing and deleting comments. These functions flush; the caller commits."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, replace
from datetime import timedelta

from sqlalchemy import delete, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account, Role
from app.comments import markdown, queries, rate_limit
from app.comments.counters import (
    affected_rows,
    change_state,
    clear_answer,
    count_shown,
    insert_if_absent,
    lock_counters,
)
from app.comments.errors import (
    CommentNotFound,
    CommentRateLimited,
    EditConflict,
    EditLimitReached,
    NotCommentAuthor,
    ThreadClosed,
)
from app.comments.models import Comment, CommentReaction, CommentReport, CommentState, CommentVersion
from app.comments.permissions import Viewer
from app.comments.recipients import notify_new_mentions, notify_recipients
from app.comments.rendering import render_html
from app.db import advisory_lock, now, sortable_id
from app.notifications.models import Notification
from app.notifications.service import delete_notifications, withdraw_emails
from app.rate_limit import RateLimitPolicy, count_attempt, retry_after
from app.web.user_text import clean_text

MAX_COMMENT_CHARACTERS = 10_000
MAX_EDITS = 50
EDITS_PER_AUTHOR = RateLimitPolicy(free_attempts=40, initial_delay_s=10.0, max_delay_s=600.0)
"""The worst text takes 0.4 s to render, and 60 new comments an hour could be edited fifty times each."""
_DUPLICATE_WINDOW = timedelta(minutes=10)
"""How long the same text by the same author in the same place counts as a duplicate."""
_DUPLICATE_CANDIDATES = 10


@dataclass(frozen=True, slots=True)
class CommentDraft:
    """A submitted comment. ``key`` comes from the form and is the same if the form is sent twice."""

    lesson: str
    cell: str
    thread_id: str | None
    text: str
    key: str
    language: str


async def create_comment(session: AsyncSession, author: Account, draft: CommentDraft, hold_first: int = 0) -> Comment:
    """Store a comment, or return the one that the same form has already stored.

    Raises:
        TextEmpty, TextTooLong, NotText: the text cannot be stored.
        CommentRateLimited: the author has written too much lately.
        CommentNotFound, ThreadClosed: the comment to reply to does not exist.
    """
    text = clean_text(draft.text, MAX_COMMENT_CHARACTERS)
    await advisory_lock(session, f"comments of {author.id}")
    key = _idempotency_key(draft, text)
    if (before := await _find_by_key(session, author, key)) is not None:
        if before.state != CommentState.deleted:
            return before
        key = _idempotency_key(replace(draft, key=""), text)  # deleted since, then sent again with the back button
    if (again := await _find_duplicate(session, author, draft, text)) is not None:
        return again
    lesson, cell = await _resolve_location(session, author, draft)
    await _check_rate_limit(session, author)
    await lock_counters(session, lesson, cell)
    values = {
        "id": sortable_id(),
        "lesson": lesson,
        "cell": cell,
        "thread_id": draft.thread_id,
        "author_id": author.id,
        "idempotency_key": key,
        "source": text,
        "html": await render_html(session, text),
        "renderer_version": markdown.RENDERER_VERSION,
        "language": draft.language,
        "state": CommentState.held if await _needs_approval(session, author, hold_first) else CommentState.shown,
        "created_at": now(),
    }
    added = await insert_if_absent(session, Comment, values)
    comment = await _find_by_key(session, author, key)
    if comment is None:
        raise CommentNotFound
    if added and comment.state == CommentState.shown:
        await count_shown(session, comment, 1)
        await notify_recipients(session, comment)
    return comment


async def edit_comment(session: AsyncSession, author: Account, comment_id: str, text: str, edits: int) -> Comment:
    """Replace the text and keep the old one as a version. ``edits`` is the edit count when the author opened the form.

    Raises:
        EditConflict: it was edited in the meantime.
        EditLimitReached: it was edited too often.
        TooManyAttempts: the author has edited too much lately.
    """
    comment = await _get_own_comment(session, author, comment_id)
    text = clean_text(text, MAX_COMMENT_CHARACTERS)
    if text == comment.source:
        return comment
    if edits != comment.edit_count:
        raise EditConflict
    if comment.edit_count >= MAX_EDITS:
        raise EditLimitReached(most=MAX_EDITS)
    await count_attempt(session, f"comment edit author {author.id}", EDITS_PER_AUTHOR)
    version = CommentVersion(
        comment_id=comment.id,
        number=comment.edit_count,
        source=comment.source,
        written_at=comment.edited_at or comment.created_at,
    )
    changed = await session.execute(
        update(Comment)
        .where(Comment.id == comment.id, Comment.edit_count == edits)
        .values(
            source=text,
            html=await render_html(session, text),
            renderer_version=markdown.RENDERER_VERSION,
            edit_count=edits + 1,
            edited_at=now(),
        )
        .execution_options(synchronize_session=False)
    )
    if affected_rows(changed) != 1:
        raise EditConflict
    session.add(version)
    await session.flush()
    await session.refresh(comment)
    await withdraw_emails(session, Notification.subject == comment.id)
    if comment.state == CommentState.shown:
        await notify_new_mentions(session, comment, version.source)
    return comment


async def delete_comment(session: AsyncSession, author: Account, comment_id: str) -> Comment:
    """Delete a comment with its text and versions; if it has replies, a stub stays."""
    comment = await _get_own_comment(session, author, comment_id)
    await change_state(
        session,
        comment,
        CommentState.deleted,
        source="",
        html="",
        pinned=False,
        helpful_count=0,
        same_count=0,
        thanks_count=0,
        report_count=0,
    )
    for table in (CommentVersion, CommentReaction, CommentReport):
        await session.execute(delete(table).where(table.comment_id == comment.id))
    await delete_notifications(session, comment.id)
    await clear_answer(session, comment)
    return comment


def _idempotency_key(draft: CommentDraft, text: str) -> str:
    """Derived from the text too: a form sent again with another text, as after the back button, is another comment."""
    parts = (draft.key or secrets.token_hex(16), draft.lesson, draft.cell, draft.thread_id or "", text)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()


async def _find_by_key(session: AsyncSession, author: Account, key: str) -> Comment | None:
    return await session.scalar(select(Comment).where(Comment.author_id == author.id, Comment.idempotency_key == key))


async def _find_duplicate(session: AsyncSession, author: Account, draft: CommentDraft, text: str) -> Comment | None:
    """A recent comment with the same text in the same place: the back button shows the form with a new key."""
    lately = (
        select(Comment).where(Comment.author_id == author.id).order_by(Comment.id.desc()).limit(_DUPLICATE_CANDIDATES)
    )
    for comment in await session.scalars(lately):
        same = (
            comment.source == text
            and comment.thread_id == draft.thread_id
            and now() - comment.created_at < _DUPLICATE_WINDOW
        )
        here = draft.thread_id is not None or (comment.lesson, comment.cell) == (draft.lesson, draft.cell)
        if same and here and comment.state != CommentState.deleted:
            return comment
    return None


async def _resolve_location(session: AsyncSession, author: Account, draft: CommentDraft) -> tuple[str, str]:
    """The lesson and cell of a new comment: for a reply, those of its thread."""
    if draft.thread_id is None:
        return draft.lesson, draft.cell
    root = await queries.get_comment(session, Viewer.of(author), draft.thread_id)
    if root.thread_id is not None or root.state != CommentState.shown:
        raise ThreadClosed
    return root.lesson, root.cell


async def _get_own_comment(session: AsyncSession, author: Account, comment_id: str) -> Comment:
    comment = await queries.get_comment(session, Viewer.of(author), comment_id)
    if comment.author_id != author.id:
        raise NotCommentAuthor
    if comment.state == CommentState.deleted:
        raise CommentNotFound
    return comment


async def _check_rate_limit(session: AsyncSession, author: Account) -> None:
    at = now()
    latest = select(Comment.created_at).where(Comment.author_id == author.id).order_by(Comment.id.desc())
    written = list(await session.scalars(latest.limit(rate_limit.MAX_TIMESTAMPS)))
    wait = retry_after(written, at, rate_limit.limits_for(at - author.created_at))
    if wait:
        raise CommentRateLimited(wait)


async def _needs_approval(session: AsyncSession, author: Account, hold_first: int) -> bool:
    """Whether an instructor must approve it first: until ``hold_first`` of a learner's comments have been shown."""
    if not hold_first or author.role != Role.learner:
        return False
    shown = (
        select(Comment.id).where(Comment.author_id == author.id, Comment.state == CommentState.shown).limit(hold_first)
    )
    return len((await session.scalars(shown)).all()) < hold_first
