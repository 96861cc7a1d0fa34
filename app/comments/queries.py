"""Reading comments: single ones, or pages that continue after the last ID shown. Each page is read from one index."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from sqlalchemy import ColumnElement, CompoundSelect, Select, TextClause, bindparam, collate, func, select, union_all
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import InstrumentedAttribute

from app.accounts.models import Account
from app.comments.errors import CommentNotFound
from app.comments.models import (
    HELD,
    PINNED,
    REPORTED,
    Comment,
    CommentCounter,
    CommentReaction,
    CommentReport,
    CommentState,
    CommentVersion,
)
from app.comments.permissions import Viewer, can_see, visible_to
from app.comments.rendering import refresh_html

THREADS_PER_PAGE = 20
"""Threads per page."""
PREVIEW_REPLIES = 4
"""Replies that the list shows of each thread."""
REPLIES_PER_PAGE = 50
"""Replies on a thread's own page."""
MAX_PAGE_BYTES = 256 * 1024
"""Of comment HTML per page. The rest goes to the next page; each page shows at least one comment."""
_MAX_SEARCHED_COMMENTS = 20_000
_MAX_FOUND_COMMENTS = 10
_MAX_RECENT_COMMENTS = 200
"""Recent comments whose authors are suggested."""
MAX_WAITING_COUNT = 100
"""More waiting comments are not counted."""
_REPLIES_BEFORE_TARGET = 5
"""Replies shown before the one that a link points to."""


class ModerationQueue(StrEnum):
    held = "held"
    reported = "reported"
    newest = "newest"


_QUEUE_CONDITIONS: Mapping[ModerationQueue, ColumnElement[bool] | TextClause] = {
    ModerationQueue.held: HELD,
    ModerationQueue.reported: REPORTED,
    ModerationQueue.newest: Comment.state != CommentState.deleted,
}


@dataclass(frozen=True, slots=True)
class CommentThread:
    """A thread and some of its replies. ``earlier`` and ``after`` tell whether there are more before and after them."""

    root: Comment
    replies: Sequence[Comment]
    earlier: bool = False
    after: str | None = None


@dataclass(frozen=True, slots=True)
class CommentPage:
    """A page of comments; ``before`` is the cursor of the next one."""

    comments: Sequence[Comment]
    before: str | None


async def get_comment(session: AsyncSession, viewer: Viewer, comment_id: str) -> Comment:
    """The comment with this ID.

    Raises:
        CommentNotFound: it does not exist, or the viewer may not see it.
    """
    comment = await session.get(Comment, comment_id) if _is_valid_id(comment_id) else None
    if comment is None or not can_see(comment, viewer):
        raise CommentNotFound
    return comment


def _is_valid_id(text: str) -> bool:
    """Whether a database accepts the ID: NUL and the lone surrogates that ``FormFields`` may contain are rejected."""
    return text.isascii() and "\0" not in text


async def get_lesson_key(session: AsyncSession, comment_id: str) -> str | None:
    """The lesson of a comment, as ``course/slug``; None if the comment does not exist."""
    if not _is_valid_id(comment_id):
        return None
    return await session.scalar(select(Comment.lesson).where(Comment.id == comment_id))


async def list_threads(
    session: AsyncSession, viewer: Viewer, lesson: str, cell: str, before: str | None = None
) -> tuple[list[CommentThread], str | None]:
    """A page of threads, newest first, pinned ones on top; and the cursor of the next page."""
    here = select(Comment).where(Comment.lesson == lesson, Comment.cell == cell).order_by(Comment.id.desc())
    rest = here.where(Comment.thread_id.is_(None), visible_to(viewer))
    pinned = (await _load_page(session, here.where(PINNED), None, THREADS_PER_PAGE, MAX_PAGE_BYTES // 2)).comments
    if pinned:  # pinned threads that do not fit on top stay in the list
        rest = rest.where(Comment.id.not_in([root.id for root in pinned]))
    on_top = [] if before else pinned
    listed = await _load_page(session, rest, before, THREADS_PER_PAGE, MAX_PAGE_BYTES - sum(map(_html_bytes, on_top)))
    roots = [*on_top, *listed.comments]
    replies = await _load_preview_replies(session, viewer, roots)
    await refresh_html(session, (reply for some in replies.values() for reply in some))
    room = MAX_PAGE_BYTES - sum(map(_html_bytes, roots))
    found = []
    for root in roots:
        some = replies.get(root.id, [])
        shown = some[: count_fitting(some[:PREVIEW_REPLIES], room, 0)]
        room -= sum(map(_html_bytes, shown))
        found.append(CommentThread(root, shown, after=(shown or [root])[-1].id if len(some) > len(shown) else None))
    return found, listed.before


async def get_thread(
    session: AsyncSession, viewer: Viewer, comment: Comment, after: str | None = None
) -> CommentThread:
    """The thread of a comment: from the start, after ``after``, or around ``comment`` if that is a reply."""
    root = await session.get_one(Comment, comment.root_id)
    replies = select(Comment).where(Comment.thread_id == root.id, visible_to(viewer))
    begin = after or ""
    if comment.thread_id is not None and after is None:
        earlier = replies.where(Comment.id < comment.id).order_by(Comment.id.desc()).limit(_REPLIES_BEFORE_TARGET + 1)
        beyond = list(await session.scalars(earlier))
        begin = beyond[-1].id if len(beyond) > _REPLIES_BEFORE_TARGET else ""
    found = list(
        await session.scalars(replies.where(Comment.id > begin).order_by(Comment.id).limit(REPLIES_PER_PAGE + 1))
    )
    await refresh_html(session, [root, *found])
    asked_for = next((number for number, reply in enumerate(found, 1) if reply.id == comment.id), 1)
    shown = found[: count_fitting(found[:REPLIES_PER_PAGE], MAX_PAGE_BYTES - _html_bytes(root), asked_for)]
    return CommentThread(root, shown, earlier=bool(begin), after=shown[-1].id if len(found) > len(shown) else None)


async def list_moderation_queue(session: AsyncSession, kind: ModerationQueue, before: str | None = None) -> CommentPage:
    """A page of the moderation queue, newest first."""
    listed = select(Comment).where(_QUEUE_CONDITIONS[kind]).order_by(Comment.id.desc())
    return await _load_page(session, listed, before, THREADS_PER_PAGE)


async def count_waiting(session: AsyncSession) -> dict[ModerationQueue, int]:
    """How many comments wait for an instructor, by queue, at most ``MAX_WAITING_COUNT``."""
    counts = {}
    for kind in (ModerationQueue.held, ModerationQueue.reported):
        waiting = select(Comment.id).where(_QUEUE_CONDITIONS[kind]).limit(MAX_WAITING_COUNT).subquery()
        counts[kind] = await session.scalar(select(func.count()).select_from(waiting)) or 0
    return counts


async def list_comments_by_author(
    session: AsyncSession, viewer: Viewer, account_id: str, before: str | None = None, hidden: Collection[str] = ()
) -> CommentPage:
    """Comments by an account that the viewer may read, newest first. ``hidden`` lists lessons to leave out."""
    own = select(Comment).where(
        Comment.author_id == account_id, Comment.state != CommentState.deleted, visible_to(viewer)
    )
    if hidden:
        own = own.where(Comment.lesson.not_in(hidden))
    if not viewer.instructor and viewer.account_id != account_id:
        own = own.where(Comment.state == CommentState.shown)
    return await _load_page(session, own.order_by(Comment.id.desc()), before, THREADS_PER_PAGE)


async def count_by_cell(session: AsyncSession, lesson: str) -> dict[str, int]:
    """The number of shown comments of a lesson, by cell; the empty name counts those on the lesson as a whole."""
    rows = await session.execute(
        select(CommentCounter.cell, CommentCounter.comment_count).where(
            CommentCounter.lesson == lesson, CommentCounter.comment_count > 0
        )
    )
    return {row.cell: row.comment_count for row in rows}


async def find_comments(session: AsyncSession, words: Sequence[str], hidden_lessons: Collection[str]) -> list[Comment]:
    """The newest shown comments that contain all words, among the newest comments of all.

    Neither database has an index for parts of words. The comments are read from the newest on, until enough are found;
    the limit bounds the time of a search that finds few.
    """
    if not words:
        return []
    oldest = select(Comment.id).order_by(Comment.id.desc()).offset(_MAX_SEARCHED_COMMENTS - 1).limit(1)
    statement = (
        select(Comment)
        .where(
            Comment.id >= func.coalesce(oldest.scalar_subquery(), ""),
            Comment.state == CommentState.shown,
            Comment.lesson.not_in(hidden_lessons),
            *(_contains(session, Comment.source, word) for word in words),
        )
        .order_by(Comment.id.desc())
        .limit(_MAX_FOUND_COMMENTS)
    )
    return list(await session.scalars(statement))


def _contains(session: AsyncSession, column: InstrumentedAttribute[str], word: str) -> ColumnElement[bool]:
    """Whether the column contains a word, which is given in lower case, regardless of case.

    SQLite's LIKE ignores the case of ASCII letters anyway. PostgreSQL's ILIKE looks up each letter in the locale, which
    takes three to six times as long, so it is only used for words with letters outside ASCII that have a case.
    """
    if session.get_bind().dialect.name != "postgresql":
        return column.contains(word, autoescape=True)
    if word.isascii() or word.lower() == word.upper():
        return func.strpos(func.lower(collate(column, "C")), word) > 0
    return column.icontains(word, autoescape=True)


async def get_authors(session: AsyncSession, comments: Sequence[Comment]) -> dict[str, Account]:
    """The authors of the comments, by ID."""
    ids = {comment.author_id for comment in comments if comment.author_id}
    found = await session.scalars(select(Account).where(Account.id.in_(ids))) if ids else ()
    return {account.id: account for account in found}


async def get_own_reactions(session: AsyncSession, viewer: Viewer, comments: Sequence[Comment]) -> set[tuple[str, str]]:
    """The viewer's own reactions to the comments, as (comment ID, kind)."""
    if viewer.account_id is None or not comments:
        return set()
    own = select(CommentReaction.comment_id, CommentReaction.kind).where(
        CommentReaction.account_id == viewer.account_id, CommentReaction.comment_id.in_([c.id for c in comments])
    )
    return {(comment_id, kind) for comment_id, kind in await session.execute(own)}


async def list_versions(session: AsyncSession, comment: Comment) -> Sequence[CommentVersion]:
    """Earlier versions of a comment, latest first."""
    earlier = (
        select(CommentVersion).where(CommentVersion.comment_id == comment.id).order_by(CommentVersion.number.desc())
    )
    return (await session.scalars(earlier)).all()


async def get_open_report_reasons(session: AsyncSession, comments: Sequence[Comment]) -> dict[str, list[str]]:
    """The reasons of the comments' open reports, by comment ID."""
    reported = [comment.id for comment in comments if comment.report_count]
    found: dict[str, list[str]] = {}
    if reported:
        unresolved = select(CommentReport.comment_id, CommentReport.reason).where(
            CommentReport.comment_id.in_(reported), ~CommentReport.resolved
        )
        for comment_id, reason in await session.execute(unresolved.limit(200)):
            found.setdefault(comment_id, []).append(reason)
    return found


async def find_handles(
    session: AsyncSession, lesson: str, cell: str, thread_id: str | None, begins: str, most: int = 6
) -> Sequence[tuple[str, str]]:
    """Handles and names that start with ``begins``, of people who recently wrote in the thread or started one there."""
    shown = select(Comment.author_id).where(Comment.state == CommentState.shown, Comment.author_id.is_not(None))
    latest = shown.order_by(Comment.id.desc()).limit(_MAX_RECENT_COMMENTS)
    here = await session.scalars(
        latest.where(Comment.lesson == lesson, Comment.cell == cell, Comment.thread_id.is_(None))
    )
    inside = await session.scalars(latest.where(Comment.thread_id == thread_id)) if thread_id else ()
    found = select(Account.handle, Account.name).where(
        Account.id.in_({*here, *inside}), Account.handle.startswith(begins, autoescape=True)
    )
    return [(row.handle, row.name) for row in await session.execute(found.order_by(Account.handle).limit(most))]


def count_fitting(comments: Sequence[Comment], room: int, least: int = 1) -> int:
    """How many comments, from the first, fit into ``room`` bytes of HTML; at least ``least``. Pure."""
    for number, comment in enumerate(comments):
        room -= _html_bytes(comment)
        if room < 0 and number >= least:
            return number
    return len(comments)


def _html_bytes(comment: Comment) -> int:
    return len(comment.html.encode())


async def _load_page(
    session: AsyncSession, query: Select[Comment], before: str | None, most: int, room: int = MAX_PAGE_BYTES
) -> CommentPage:
    if before:
        query = query.where(Comment.id < before)
    found = list(await session.scalars(query.limit(most + 1)))
    await refresh_html(session, found)
    shown = found[: count_fitting(found[:most], room)]
    return CommentPage(shown, shown[-1].id if len(found) > len(shown) else None)


async def _load_preview_replies(
    session: AsyncSession, viewer: Viewer, roots: Sequence[Comment]
) -> dict[str, list[Comment]]:
    """The last replies of each thread, one more than is shown: a short index scan for each, all in one query."""
    if not roots:
        return {}
    parameters = {f"root_{number}": root.id for number, root in enumerate(roots)} | {"viewer": viewer.account_id}
    looks = _preview_query(len(roots), viewer.instructor, viewer.account_id is not None)
    ids = list(await session.scalars(looks, parameters))
    found: dict[str, list[Comment]] = {}
    if ids:
        for reply in await session.scalars(select(Comment).where(Comment.id.in_(ids)).order_by(Comment.id)):
            found.setdefault(str(reply.thread_id), []).append(reply)
    return found


@lru_cache
def _preview_query(threads: int, instructor: bool, known: bool) -> CompoundSelect[tuple[str]]:
    """The query for that many threads. Cached: building it takes longer than running it."""
    seen = visible_to(Viewer("" if known else None, instructor))
    looks = [
        select(Comment.id)
        .where(Comment.thread_id == bindparam(f"root_{number}"), seen)
        .order_by(Comment.id)
        .limit(PREVIEW_REPLIES + 1)
        .subquery()
        for number in range(threads)
    ]
    return union_all(*(select(look.c.id) for look in looks))
