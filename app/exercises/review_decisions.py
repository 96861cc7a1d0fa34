"""Reviews as the staff of a group does them: comments on lines, and the decision.

The caller checks who may do this, and commits.

Comments are stored as they are written, so nothing is lost when a browser closes, and several people can review
together. The learner sees them with the decision, after which nothing changes any more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from markupsafe import Markup
from sqlalchemy import delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account
from app.comments.markdown import to_html
from app.db import now, sortable_id
from app.exercises.errors import (
    LineNotFound,
    NothingSaid,
    OwnReview,
    ReviewChanged,
    ReviewDecidedBefore,
    ReviewDecidedByAnother,
    ReviewWithdrawn,
    TooManyReviewComments,
)
from app.exercises.models import Review, ReviewComment, ReviewState
from app.exercises.reviews import exercise_event
from app.i18n import DEFAULT_LANGUAGE, gettext
from app.lessons.catalog import Catalog
from app.notifications.models import NotificationKind
from app.notifications.service import notify
from app.progress.ledger import lock_current_learner
from app.progress.service import ProgressService
from app.web.user_text import clean_text

MAX_COMMENTS = 100
"""Per review."""
MAX_COMMENT_LENGTH = 2_000
MAX_REMARK_LENGTH = 5_000


@dataclass(frozen=True, slots=True)
class ShownComment:
    """A comment on a line."""

    id: str
    author: Account | None
    """None if the account was deleted."""
    html: Markup
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ReviewedLine:
    """A line of the code in a review, with the comments on it, the oldest first."""

    number: int
    """From 1."""
    text: str
    comments: Sequence[ShownComment]


def to_markup(source: str) -> Markup:
    """What somebody wrote in a review, as HTML that is safe to show. Pure."""
    return Markup(to_html(source))  # noqa: S704 - sanitized by to_html


def line_count(review: Review) -> int:
    return review.code.count("\n") + 1


def reviewed_lines(review: Review, comments: Sequence[ShownComment], lines: Sequence[int]) -> list[ReviewedLine]:
    """The code of a review line by line. ``lines``: those of the comments. Pure."""
    by_line: defaultdict[int, list[ShownComment]] = defaultdict(list)
    for line, comment in zip(lines, comments, strict=True):
        by_line[line].append(comment)
    code = review.code.split("\n")
    return [ReviewedLine(number, text, by_line[number]) for number, text in enumerate(code, 1)]


async def load_lines(session: AsyncSession, review: Review, *, commented: bool = True) -> list[ReviewedLine]:
    """The code of a review, with the comments on it if it is to be shown ``commented``."""
    found: Sequence[tuple[ReviewComment, Account | None]] = []
    if commented:
        mine = select(ReviewComment, Account).outerjoin(Account, Account.id == ReviewComment.author_id)
        mine = mine.where(ReviewComment.review_id == review.id).order_by(ReviewComment.id)
        found = [(comment, author) for comment, author in await session.execute(mine)]
    shown = [ShownComment(row.id, author, to_markup(row.source), row.created_at) for row, author in found]
    return reviewed_lines(review, shown, [row.line for row, _ in found])


async def add_comment(session: AsyncSession, review: Review, author: Account, line: str, text: str) -> None:
    """Comment on a line, whose number is as typed. Idempotent: nobody says the same twice about one line.

    Raises LineNotFound, TooManyReviewComments, what ``clean_text`` raises, and what ``_hold`` raises.
    """
    most = line_count(review)
    number = int(line) if line.isascii() and line.isdigit() and len(line) <= 5 else 0
    if not 1 <= number <= most:
        raise LineNotFound(most=most)
    source = clean_text(text, MAX_COMMENT_LENGTH)
    row = {"review_id": review.id, "author_id": author.id, "line": number, "source": source}
    same = select(ReviewComment.id).filter_by(**row).limit(1)
    if await session.scalar(same) is not None:  # even if the review has been decided since
        return
    await _hold(session, review, author)
    if await session.scalar(same) is not None:
        return
    if await _count_comments(session, review) >= MAX_COMMENTS:
        raise TooManyReviewComments(most=MAX_COMMENTS)
    session.add(ReviewComment(id=sortable_id(), created_at=now(), **row))
    await session.flush()


async def remove_comment(session: AsyncSession, review: Review, author: Account, comment_id: str) -> None:
    """Delete one of one's own comments. Idempotent. Raises what ``_hold`` raises."""
    await _hold(session, review, author)
    mine = (ReviewComment.review_id == review.id, ReviewComment.author_id == author.id)
    await session.execute(delete(ReviewComment).where(*mine, ReviewComment.id == comment_id))


async def decide(
    session: AsyncSession,
    progress: ProgressService,
    catalog: Catalog,
    review: Review,
    reviewer: Account,
    remark: str,
    seen: Collection[str],
    *,
    accepts: bool,
) -> None:
    """Accept a review, which completes the exercise, or request changes. Idempotent.

    ``seen``: IDs of the comments that the reviewer had before them.

    Raises:
        NothingSaid: changes are requested, but neither a comment nor the remark says which.
        ReviewChanged: somebody else has commented meanwhile.
        TextTooLong, TextInvalid: the remark cannot be stored.
        and what ``_hold`` raises.
    """
    said = clean_text(remark, MAX_REMARK_LENGTH) if remark.strip() else ""
    state = ReviewState.accepted if accepts else ReviewState.changes_requested
    try:
        learner = await _hold(session, review, reviewer)
    except ReviewDecidedBefore:
        await session.refresh(review)
        if (review.state, review.remark) == (state, said):
            return
        raise
    comments = select(ReviewComment).where(ReviewComment.review_id == review.id)
    stored = (await session.scalars(comments)).all()
    if any(comment.author_id != reviewer.id and comment.id not in seen for comment in stored):
        raise ReviewChanged
    if not accepts and not said and not stored:
        raise NothingSaid
    values = {"state": state, "remark": said, "reviewer_id": reviewer.id, "decided_at": now()}
    await session.execute(update(Review).where(Review.id == review.id).values(**values))
    if accepts:  # also if the lesson is a draft again: it was published when the learner asked
        lesson = catalog.with_drafts.find_lesson(review.lesson, DEFAULT_LANGUAGE)
        event = exercise_event(lesson, review.lesson, review.exercise)
        await progress.ledger.enter(session, learner, [event])
    await notify(session, [review.account_id], NotificationKind.review, review.id, reviewer.id)


async def _hold(session: AsyncSession, review: Review, by: Account) -> str:
    """Keep everybody else from changing a waiting review until the transaction ends. Returns its learner's ID.

    The learner is locked, too, and first: a comment and a decision of one transaction take both locks in one order.

    Raises ReviewDecidedBefore, ReviewDecidedByAnother, ReviewWithdrawn, or OwnReview.
    """
    if review.account_id == by.id:
        raise OwnReview
    account = await session.get_one(Account, review.account_id)
    learner = await lock_current_learner(session, account.learner_id)
    waiting = update(Review).where(Review.id == review.id, Review.state == ReviewState.waiting)
    waiting = waiting.where(Review.group_id == review.group_id)  # it may have been withdrawn, and sent to another group
    touched = waiting.values(state=ReviewState.waiting).returning(Review.id)
    if await session.scalar(touched.execution_options(synchronize_session=False)) is not None:
        return learner
    decided = select(Review.state, Review.reviewer_id, Account.name)
    decided = decided.outerjoin(Account, Account.id == Review.reviewer_id).where(Review.id == review.id)
    state, reviewer, name = (await session.execute(decided)).one_or_none() or (ReviewState.withdrawn, None, None)
    if state in (ReviewState.withdrawn, ReviewState.waiting):
        raise ReviewWithdrawn
    if reviewer == by.id:
        raise ReviewDecidedBefore
    raise ReviewDecidedByAnother(name=name or gettext("Someone"))


async def _count_comments(session: AsyncSession, review: Review) -> int:
    return await session.scalar(select(func.count()).where(ReviewComment.review_id == review.id)) or 0
