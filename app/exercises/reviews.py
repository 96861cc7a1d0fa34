"""Reviews as learners use them: asking for one, withdrawing it, and reading it. Functions flush; the caller commits.

An exercise with ``:review: manual`` is done once an instructor has accepted a submission that passes its checks. That
holds for learners with a reviewer in their group; for everyone else, the checks decide. ``review_decisions`` has the
reviewers' side.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from fastapi import Depends
from sqlalchemy import Select, delete, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased, defer

from app.accounts.models import Account
from app.db import advisory_lock, now, sortable_id
from app.exercises.errors import (
    CodeTooLongForReview,
    NothingToReview,
    ReviewAlreadyAccepted,
    ReviewAlreadyDecided,
    ReviewNotFound,
    ReviewNotOffered,
    ReviewUnchanged,
    ReviewWaiting,
)
from app.exercises.models import DECIDED, Review, ReviewComment, ReviewState, Submission, Verdict
from app.lessons.model import Cell, Lesson, LessonStatus
from app.notifications.models import NotificationKind
from app.notifications.service import notify
from app.progress.events import LearningEvent
from app.rate_limit import RateLimitPolicy, count_attempt
from app.runs.event_log import read_events
from app.runs.models import Run
from app.runs.printed_lines import printed_lines
from app.web.dependencies import AppKey

MAX_WITHDRAWN = 30
"""Withdrawn submissions to one exercise that are kept; for what the staff has decided, there is no limit."""
MAX_LINES = 2_000
"""Of the code in a review: a page shows all of them."""
WITHOUT_CODE = tuple(defer(column, raiseload=True) for column in (Review.code, Review.output, Review.results))
"""Options for lists of reviews, which show none of these: together, they can have megabytes."""
_MAX_OUTPUT = 20_000
"""Characters."""
_REQUESTS = RateLimitPolicy(free_attempts=20, initial_delay_s=2.0, max_delay_s=60.0)


@dataclass(frozen=True, slots=True)
class ReviewGroup:
    """A group whose staff reviews exercises of a learner."""

    id: str
    name: str


ReviewGroups = Callable[[AsyncSession, str, str], Awaitable[Sequence[ReviewGroup]]]
"""Finds the groups whose staff reviews the exercises of a learner (an ID) in a course (a slug)."""
REVIEW_GROUPS = AppKey[ReviewGroups]("review_groups")
"""Set by the feature that has groups."""
ReviewGroupsDep = Annotated[ReviewGroups, Depends(REVIEW_GROUPS.from_request)]
Reviewers = Callable[[AsyncSession, str], Awaitable[Sequence[str]]]
"""Finds the accounts (their IDs) that review what is submitted to a group (an ID)."""
REVIEWERS = AppKey[Reviewers]("reviewers")
"""Set by the feature that has groups."""
ReviewersDep = Annotated[Reviewers, Depends(REVIEWERS.from_request)]


@dataclass(frozen=True, slots=True)
class LearnerReview:
    """A review in the panel of its exercise."""

    id: str
    run_id: str
    state: ReviewState
    requested_at: datetime
    decided_at: datetime | None
    reviewer: str
    """The name of the person who decided; empty until then, or if that account was deleted."""


@dataclass(frozen=True, slots=True)
class ExerciseReviews:
    """What a learner sees of the reviews of one exercise."""

    groups: Sequence[ReviewGroup]
    """Whose instructors the learner can ask. Without any, the checks decide."""
    reviews: Sequence[LearnerReview] = ()
    """The latest first, without those that were withdrawn."""

    @property
    def latest(self) -> LearnerReview | None:
        return self.reviews[0] if self.reviews else None

    @property
    def accepted(self) -> bool:
        return any(one.state is ReviewState.accepted for one in self.reviews)

    def may_ask(self, passed_run: str | None) -> bool:
        """Whether the latest submission that passed (None if there is none) can be submitted for review."""
        if not self.groups or passed_run is None or self.accepted:
            return False
        latest = self.latest
        return latest is None or (latest.state is not ReviewState.waiting and latest.run_id != passed_run)


def exercise_event(lesson: Lesson | None, key: str, name: str) -> LearningEvent:
    """The event of an exercise that is done. Pure. Without the lesson, which is gone, it brings no XP."""
    cell = lesson.cell(name) if lesson is not None else None
    xp = cell.exercise.xp if cell is not None and cell.exercise is not None else 0
    return LearningEvent("exercise", f"{key}#{name}", xp)


async def load_exercise_reviews(
    session: AsyncSession, groups: ReviewGroups, learner: str | None, lesson: Lesson
) -> dict[str, ExerciseReviews]:
    """The reviews of those exercises of a lesson that are reviewed, by the cell's name."""
    reviewed = [cell.name for cell in lesson.exercises if _is_reviewed(lesson, cell)]
    if learner is None or not reviewed:
        return {}
    offered = await groups(session, learner, lesson.course)
    found: defaultdict[str, list[LearnerReview]] = defaultdict(list)
    mine = _of_learner(learner).where(Review.lesson == lesson.key, Review.exercise.in_(reviewed))
    mine = mine.order_by(Review.requested_at.desc(), Review.id.desc()).options(*WITHOUT_CODE)
    for review, reviewer in await session.execute(mine):
        moments = (review.requested_at, review.decided_at)
        who = reviewer.name if reviewer is not None else ""
        found[review.exercise].append(LearnerReview(review.id, review.run_id, ReviewState(review.state), *moments, who))
    return {name: ExerciseReviews(offered, found[name]) for name in reviewed}


def _is_reviewed(lesson: Lesson, cell: Cell) -> bool:
    """Whether learners can ask for reviews of an exercise. Drafts earn nothing, so nobody reviews them."""
    return cell.exercise is not None and cell.exercise.is_reviewed and lesson.status is not LessonStatus.draft


def _of_learner(learner: str) -> Select[Review, Account | None]:
    """A learner's reviews and their reviewers, without those that nobody reviews any more."""
    reviewer = aliased(Account)
    return (
        select(Review, reviewer)
        .join(Account, Account.id == Review.account_id)
        .outerjoin(reviewer, reviewer.id == Review.reviewer_id)
        .where(
            Account.learner_id == learner,
            Review.state != ReviewState.withdrawn,
            or_(Review.state != ReviewState.waiting, Review.group_id.is_not(None)),
        )
    )


async def request_review(
    session: AsyncSession,
    groups: ReviewGroups,
    reviewers: Reviewers,
    account: Account,
    lesson: Lesson,
    cell: Cell,
    group_id: str,
) -> None:
    """Ask the staff of a group to review the latest submission that passed, and notify it. Idempotent while it waits.

    However many learners ask, each reviewer has one unread notification for the group.

    Raises:
        ReviewNotOffered: the exercise is not reviewed, or not by that group.
        NothingToReview: no submission has passed, or it was deleted.
        ReviewWaiting: an earlier submission is waiting.
        ReviewUnchanged, ReviewAlreadyAccepted: that has been decided.
        CodeTooLongForReview, TooManyAttempts: a limit.
    """
    await _lock_requests(session, account.id)
    await count_attempt(session, f"review {account.id}", _REQUESTS)  # with SQLite, this takes the write lock
    offered = await groups(session, account.learner_id, lesson.course)
    if not _is_reviewed(lesson, cell) or group_id not in {group.id for group in offered}:
        raise ReviewNotOffered
    mine = (Review.account_id == account.id, Review.lesson == lesson.key, Review.exercise == cell.name)
    lapsed = update(Review).where(*mine, Review.state == ReviewState.waiting, Review.group_id.is_(None))
    await session.execute(lapsed.values(state=ReviewState.withdrawn))
    run, results = await _latest_passed(session, account.learner_id, lesson.key, cell.name)
    before = {review.run_id: review for review in await session.scalars(select(Review).where(*mine))}
    same = before.get(run.id)
    if any(review.state == ReviewState.accepted for review in before.values()):
        raise ReviewAlreadyAccepted
    if same is not None and same.state == ReviewState.waiting:
        return
    if any(review.state == ReviewState.waiting for review in before.values()):
        raise ReviewWaiting
    if same is not None and same.state == ReviewState.changes_requested:
        raise ReviewUnchanged
    if same is not None:
        if same.group_id != group_id:  # what the staff of one group wrote is not for that of another
            await session.execute(delete(ReviewComment).where(ReviewComment.review_id == same.id))
        same.state, same.group_id, same.requested_at = ReviewState.waiting, group_id, now()
    else:
        withdrawn = sorted(review.id for review in before.values() if review.state == ReviewState.withdrawn)
        await session.execute(delete(Review).where(Review.id.in_(withdrawn[:-MAX_WITHDRAWN])))
        session.add(await _review_of(session, account, group_id, run, results))
    await session.flush()
    await notify(session, await reviewers(session, group_id), NotificationKind.review_request, group_id, again=True)


async def _review_of(session: AsyncSession, account: Account, group_id: str, run: Run, results: str) -> Review:
    """What is submitted for review. Raises CodeTooLongForReview."""
    code = run.code.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")
    if (lines := code.count("\n") + 1) > MAX_LINES:
        raise CodeTooLongForReview(lines=lines, most=MAX_LINES)
    output = "\n".join(printed_lines(await read_events(session, run.id, "text")))[:_MAX_OUTPUT]
    return Review(
        id=sortable_id(),
        account_id=account.id,
        group_id=group_id,
        lesson=run.lesson,
        exercise=run.cell,
        run_id=run.id,
        code=code,
        output=output,
        results=results,
        state=ReviewState.waiting,
        requested_at=now(),
        remark="",
    )


async def _lock_requests(session: AsyncSession, account_id: str) -> None:
    """Keep a learner from asking for other reviews, and from leaving a group, until the transaction ends."""
    await advisory_lock(session, f"reviews of {account_id}")


async def _latest_passed(session: AsyncSession, learner: str, lesson: str, exercise: str) -> tuple[Run, str]:
    """The latest submission that passed, and the results of its checks. Raises NothingToReview."""
    mine = (Run.learner_id == learner, Run.lesson == lesson, Run.cell == exercise, Run.judgement.is_(True))
    passed = select(Run, Submission.results).join(Submission, Submission.run_id == Run.id)
    passed = passed.where(*mine, Submission.verdict == Verdict.passed)
    found = (await session.execute(passed.order_by(Run.created_at.desc(), Run.id.desc()).limit(1))).one_or_none()
    if found is None:
        raise NothingToReview
    return found[0], found[1]


async def withdraw_review(session: AsyncSession, account: Account, review_id: str) -> None:
    """Stop waiting for a review. Idempotent. Comments stay, in case the same group is asked again.

    Raises ReviewNotFound or ReviewAlreadyDecided.
    """
    mine = (Review.id == review_id, Review.account_id == account.id)
    waiting = update(Review).where(*mine, Review.state == ReviewState.waiting)
    await session.execute(waiting.values(state=ReviewState.withdrawn).execution_options(synchronize_session=False))
    state = await session.scalar(select(Review.state).where(*mine))
    if state is None:
        raise ReviewNotFound
    if state in DECIDED:
        raise ReviewAlreadyDecided


async def withdraw_reviews_of_member(session: AsyncSession, group_id: str, account_id: str) -> None:
    """Withdraw what a learner who leaves a group has waiting there. Call it before the membership ends.

    A request at the same time is withdrawn, too, or finds no group to ask.
    """
    await _lock_requests(session, account_id)
    theirs = (Review.group_id == group_id, Review.account_id == account_id, Review.state == ReviewState.waiting)
    await session.execute(update(Review).where(*theirs).values(state=ReviewState.withdrawn))


async def get_own_review(session: AsyncSession, account: Account, review_id: str) -> tuple[Review, str]:
    """One of the learner's own reviews, and its reviewer's name. Raises ReviewNotFound."""
    mine = _of_learner(account.learner_id).where(Review.id == review_id)
    found = (await session.execute(mine)).one_or_none()
    if found is None:
        raise ReviewNotFound
    return found[0], found[1].name if found[1] else ""
