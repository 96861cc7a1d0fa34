"""The reviews of a group: whose exercises its staff reviews, what waits, and what was decided.

A review belongs to the group that the learner chose. The staff of a group sees those of its present learners only.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Select, and_, func, literal, or_, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased

from app.accounts.models import Account, Role
from app.db import Database, now
from app.exercises.errors import ReviewNotFound
from app.exercises.models import DECIDED, Review, ReviewState
from app.exercises.reviews import WITHOUT_CODE, ReviewGroup
from app.groups.models import Group, GroupMember, GroupRole
from app.groups.report_table import csv_moment, in_zone
from app.groups.service import group_zone
from app.i18n import gettext, pgettext
from app.lessons.catalog import CatalogView

MAX_SHOWN = 100
"""Waiting reviews on one page, and decided ones."""
_SHOWN = (ReviewState.waiting, *DECIDED)
"""Code that was withdrawn is for nobody else."""
_EXPORT_BATCH = 500


@dataclass(frozen=True, slots=True)
class GroupReview:
    """A review with its learner, and its reviewer: None until it is decided."""

    review: Review
    learner: Account
    reviewer: Account | None


@dataclass(frozen=True, slots=True)
class ReviewQueue:
    """What waits, the oldest first, and what was decided last. At most ``MAX_SHOWN`` of each."""

    waiting: Sequence[GroupReview]
    decided: Sequence[GroupReview]
    waiting_by_lesson: Sequence[tuple[str, int]]
    """How many wait for each lesson (``course/slug``), also those that are not shown."""

    def count_waiting(self, lesson: str = "") -> int:
        """How many wait for one lesson, or for all of them."""
        return sum(count for key, count in self.waiting_by_lesson if lesson in ("", key))


@dataclass(frozen=True, slots=True)
class WaitingReviews:
    """How many reviews wait in a group."""

    group_id: str
    group_name: str
    count: int


async def find_review_groups(session: AsyncSession, learner: str, course: str) -> Sequence[ReviewGroup]:
    """The present groups of a learner in a course that have somebody who reviews, the one joined first first."""
    moment = now()
    has_staff = _reviewers().correlate(Group).exists()
    mine = (
        select(Group.id, Group.name)
        .join(GroupMember, GroupMember.group_id == Group.id)
        .join(Account, Account.id == GroupMember.account_id)
        .where(Account.learner_id == learner, GroupMember.role == GroupRole.learner, Group.course == course)
        .where(or_(Group.starts_at.is_(None), Group.starts_at <= moment))
        .where(or_(Group.ends_at.is_(None), Group.ends_at > moment), has_staff)
    )
    found = await session.execute(mine.order_by(GroupMember.joined_at, Group.id))
    return [ReviewGroup(group, name) for group, name in found]


def _reviewers() -> Select[str]:
    """The accounts that review in the group of the enclosing query."""
    staff, colleague = aliased(GroupMember), aliased(Account)
    reviews = or_(staff.role == GroupRole.assistant, colleague.role != Role.learner)
    return (
        select(colleague.id)
        .join(staff, staff.account_id == colleague.id)
        .where(staff.group_id == Group.id, staff.role != GroupRole.learner, colleague.disabled_at.is_(None), reviews)
    )


async def find_reviewers(session: AsyncSession, group_id: str) -> Sequence[str]:
    """The IDs of the accounts that review in a group."""
    return list(await session.scalars(_reviewers().where(Group.id == group_id)))


async def count_waiting(session: AsyncSession, account_id: str, group_ids: Sequence[str]) -> Sequence[WaitingReviews]:
    """What waits in those of the groups in which the account reviews, apart from groups in which nothing waits."""
    waits = (
        select(Group.id, Group.name, func.count())
        .join(Review, and_(Review.group_id == Group.id, Review.state == ReviewState.waiting))
        .join(GroupMember, _is_learner())
        .where(Group.id.in_(group_ids), literal(account_id).in_(_reviewers().correlate(Group)))
        .group_by(Group.id, Group.name)
    )
    return [WaitingReviews(*found) for found in await session.execute(waits)]


def _is_learner() -> ColumnElement[bool]:
    """Whether a member is the learner of a review, and still a learner of the group."""
    theirs = and_(GroupMember.group_id == Review.group_id, GroupMember.account_id == Review.account_id)
    return and_(theirs, GroupMember.role == GroupRole.learner)


def _of_group(group: Group) -> Select[Review, Account, Account | None]:
    """The reviews of a group's present learners."""
    reviewer = aliased(Account)
    return (
        select(Review, Account, reviewer)
        .join(GroupMember, _is_learner())
        .join(Account, Account.id == Review.account_id)
        .outerjoin(reviewer, reviewer.id == Review.reviewer_id)
        .where(Review.group_id == group.id)
    )


async def load_queue(session: AsyncSession, group: Group, lesson: str = "") -> ReviewQueue:
    """The queue of a group, or of one lesson (``course/slug``) in it."""
    every = _of_group(group)
    waits = every.where(Review.state == ReviewState.waiting)
    counted = waits.with_only_columns(Review.lesson, func.count()).group_by(Review.lesson).order_by(Review.lesson)
    by_lesson = [(key, count) for key, count in await session.execute(counted)]
    done = every.where(Review.state.in_(DECIDED))
    if lesson:
        waits, done = waits.where(Review.lesson == lesson), done.where(Review.lesson == lesson)
    return ReviewQueue(
        await _rows(session, waits.order_by(Review.requested_at, Review.id)),
        await _rows(session, done.order_by(Review.decided_at.desc(), Review.id)),
        by_lesson,
    )


async def find_review(session: AsyncSession, group: Group, review_id: str) -> GroupReview:
    """A review of a present learner of the group, whatever its state. Raises ReviewNotFound."""
    found = (await session.execute(_of_group(group).where(Review.id == review_id))).one_or_none()
    if found is None:
        raise ReviewNotFound
    return GroupReview(*found)


async def list_reviews_of_learner(session: AsyncSession, group: Group, account_id: str) -> Sequence[GroupReview]:
    """A learner's reviews in a group that wait or were decided, the latest first."""
    theirs = _of_group(group).where(Review.account_id == account_id, Review.state.in_(_SHOWN))
    return await _rows(session, theirs.order_by(Review.requested_at.desc(), Review.id))


async def export_reviews(
    db: Database, group: Group, catalog: CatalogView, language: str, address: Callable[[str], str]
) -> AsyncIterator[Sequence[str]]:
    """Yield all reviews that wait or were decided as rows of a table; ``address`` gives that of a review, by its ID.

    Holds no connection while the client reads.
    """
    zone = group_zone(group)
    submitted, decided = in_zone(pgettext("a time", "Submitted"), zone), in_zone(pgettext("a time", "Decided"), zone)
    learner = (gettext("Name"), gettext("Handle"))
    about = (gettext("Lesson"), gettext("Exercise"), gettext("State"))
    yield [*learner, *about, submitted, decided, gettext("Reviewer"), gettext("Remark"), gettext("Address")]
    after = ""
    while True:
        query = _of_group(group).where(Review.state.in_(_SHOWN), Review.id > after).order_by(Review.id)
        async with db.session() as session:
            batch = await _rows(session, query, _EXPORT_BATCH)
        for found in batch:
            review = found.review
            yield [
                found.learner.name,
                found.learner.handle,
                catalog.lesson_title(review.lesson, language),
                catalog.cell_title(review.lesson, review.exercise, language),
                review_state_name(review.state),
                csv_moment(review.requested_at, zone),
                csv_moment(review.decided_at, zone) if review.decided_at is not None else "",
                found.reviewer.name if found.reviewer is not None else "",
                review.remark,
                address(review.id),
            ]
        if len(batch) < _EXPORT_BATCH:
            return
        after = batch[-1].review.id


def review_state_name(state: str) -> str:
    """The name of a state, in the current language."""
    return {
        ReviewState.waiting: gettext("Waiting"),
        ReviewState.withdrawn: gettext("Withdrawn"),
        ReviewState.changes_requested: gettext("Changes requested"),
        ReviewState.accepted: gettext("Accepted"),
    }[ReviewState(state)]


async def count_waiting_of(session: AsyncSession, group: Group, account_id: str) -> int:
    """How many reviews of a learner wait in a group: they are withdrawn when the learner leaves."""
    waiting = (Review.group_id == group.id, Review.account_id == account_id, Review.state == ReviewState.waiting)
    return await session.scalar(select(func.count()).where(*waiting)) or 0


async def list_earlier_reviews(session: AsyncSession, group: Group, review: Review) -> Sequence[GroupReview]:
    """The other reviews of the same learner and exercise in the group that were decided, the latest first."""
    same = (Review.account_id == review.account_id, Review.lesson == review.lesson, Review.exercise == review.exercise)
    others = _of_group(group).where(*same, Review.id != review.id, Review.state.in_(DECIDED))
    return await _rows(session, others.order_by(Review.decided_at.desc(), Review.id))


async def _rows(
    session: AsyncSession, query: Select[Review, Account, Account | None], most: int = MAX_SHOWN
) -> Sequence[GroupReview]:
    """Reviews of a list, which shows neither code nor output: those of a page can have megabytes."""
    found = await session.execute(query.options(*WITHOUT_CODE).limit(most))
    return [GroupReview(review, learner, reviewer) for review, learner, reviewer in found]
