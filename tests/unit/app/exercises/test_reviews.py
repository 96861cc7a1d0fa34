"""Reviews on both databases: whatever happens at once, one decision counts, and nothing is earned twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from sqlalchemy import func, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account, Role
from app.db import Database, now
from app.errors import LockstepError
from app.exercises import review_decisions, reviews
from app.exercises.errors import ReviewNotOffered, ReviewWithdrawn
from app.exercises.models import DECIDED, Review, ReviewComment, ReviewState, Submission, Verdict
from app.exercises.reviews import ExerciseReviews, LearnerReview, ReviewGroup
from app.groups.models import Group
from app.lessons.catalog import Catalog
from app.notifications.models import Notification
from app.progress.achievement_catalog import AchievementCatalog
from app.progress.models import LedgerEntry
from app.progress.service import ProgressService
from app.runs.models import RunState
from tests.factories.accounts import store_account
from tests.factories.course import LESSON, write_course
from tests.factories.judged_lesson import with_exercise
from tests.factories.stored_runs import store_run

AUTUMN = (ReviewGroup("a", "Autumn"),)


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = Catalog(write_course(tmp_path / "lessons"), quiet=True)
    catalog.reload()
    return catalog


async def waiting_review(db: Database, learner: Account) -> Review:
    facts = {"account_id": learner.id, "group_id": None, "lesson": LESSON, "exercise": "double", "run_id": "r"}
    facts |= {"code": "x = 1\ny = 2", "output": "", "results": "[]", "remark": ""}
    review = Review(id="1", state=ReviewState.waiting, requested_at=now(), **facts)
    async with db.writing() as session:
        session.add(review)
    return review


async def at_once(db: Database, *steps: Callable[[AsyncSession], Awaitable[None]]) -> list[bool]:
    """Which of the steps, each in a transaction of its own, were not refused."""

    async def attempt(step: Callable[[AsyncSession], Awaitable[None]]) -> bool:
        try:
            async with db.writing() as session:
                await step(session)
        except LockstepError:
            return False
        return True

    return await asyncio.gather(*(attempt(step) for step in steps))


async def test_staff_of_the_group_before_cannot_comment_on_what_another_group_reviews(database: Database) -> None:
    learner, teacher = await store_account(database), await store_account(database, Role.instructor)
    review = await waiting_review(database, learner)
    async with database.writing() as session:
        session.add(Group(id="b" * 32, created_at=now(), name="Spring", course="small", time_zone="UTC"))
        await session.flush()
        await session.execute(
            update(Review).values(group_id="b" * 32).execution_options(synchronize_session=False)
        )  # withdrawn, and submitted to another group, after the staff of the first one has found it
        with pytest.raises(ReviewWithdrawn):
            await review_decisions.add_comment(session, review, teacher, "1", "Not for you")


async def nobody(_session: AsyncSession, _group: str) -> Sequence[str]:
    """The reviewers of a group without staff."""
    return ()


@pytest.mark.parametrize("first", range(3))
async def test_one_of_several_decisions_counts_and_the_learner_cannot_withdraw_it(
    database: Database, catalog: Catalog, first: int
) -> None:
    ada, grace, alan = [await store_account(database, name=name) for name in ("Ada", "Grace", "Alan")]
    review = await waiting_review(database, ada)
    progress = ProgressService(catalog, AchievementCatalog(catalog, quiet=True))

    def decide(by: Account, *, accepts: bool) -> Callable[[AsyncSession], Awaitable[None]]:
        return lambda session: review_decisions.decide(
            session, progress, catalog, review, by, "Read", (), accepts=accepts
        )

    steps = [
        decide(grace, accepts=True),
        decide(alan, accepts=False),
        lambda session: reviews.withdraw_review(session, ada, review.id),
    ]
    done = await at_once(database, *steps[first:], *steps[:first])

    assert sum(done) == 1
    async with database.session() as session:
        state = await session.scalar(select(Review.state))
        notified = await session.scalar(select(func.count()).select_from(Notification))
        earned = list(await session.scalars(select(LedgerEntry.subject).where(LedgerEntry.kind == "exercise")))
    assert notified == (state in DECIDED)
    assert earned == ([f"{LESSON}#double"] if state == ReviewState.accepted else [])


async def test_a_comment_arrives_before_the_decision_or_is_refused(database: Database, catalog: Catalog) -> None:
    ada = await store_account(database, name="Ada")
    grace, alan = [await store_account(database, Role.instructor, name=name) for name in ("Grace", "Alan")]
    review = await waiting_review(database, ada)
    progress = ProgressService(catalog, AchievementCatalog(catalog, quiet=True))

    commented, decided = await at_once(
        database,
        lambda session: review_decisions.add_comment(session, review, grace, "2", "No"),
        lambda session: review_decisions.decide(session, progress, catalog, review, alan, "", (), accepts=True),
    )

    assert commented is not decided  # a decision that has not seen the comment is refused, too
    async with database.session() as session:
        assert await session.scalar(select(func.count()).select_from(ReviewComment)) == commented


async def test_decisions_with_a_comment_and_without_never_wait_for_each_other(
    database: Database, catalog: Catalog
) -> None:
    ada, grace, alan = [await store_account(database, name=name) for name in ("Ada", "Grace", "Alan")]
    review = await waiting_review(database, ada)
    progress = ProgressService(catalog, AchievementCatalog(catalog, quiet=True))

    async def decide(session: AsyncSession, by: Account) -> None:
        await review_decisions.decide(session, progress, catalog, review, by, "Read", (), accepts=True)

    async def comment_and_decide(session: AsyncSession) -> None:
        await review_decisions.add_comment(session, review, grace, "1", "Good")
        await decide(session, grace)

    assert sum(await at_once(database, comment_and_decide, lambda session: decide(session, alan))) == 1


async def test_a_learner_who_leaves_while_they_ask_leaves_nothing_waiting(database: Database, catalog: Catalog) -> None:
    ada = await store_account(database, name="Ada")
    lesson = catalog.find_lesson(LESSON, "en")
    assert lesson is not None
    lesson = with_exercise(lesson, reviewed=True)
    exercise = lesson.cell("double")
    assert exercise is not None
    async with database.writing() as session:
        session.add(Group(id="a", name="Autumn", course="small", time_zone="UTC", created_at=now()))
    facts = {"state": RunState.finished, "outcome": "ok", "judgement": True, "cell": "double", "lesson": LESSON}
    run = await store_run(database, learner_id=ada.learner_id, **facts)
    async with database.writing() as session:
        row = {"run_id": run, "verdict": Verdict.passed, "results": "[]", "lesson_digest": "d"}
        session.add(Submission(**row, idempotency_key="k"))
    leaving: list[asyncio.Task[None]] = []

    async def leave() -> None:
        async with database.writing() as session:
            await reviews.withdraw_reviews_of_member(session, "a", ada.id)

    async def autumn(_session: AsyncSession, _learner: str, _course: str) -> Sequence[ReviewGroup]:
        leaving.append(asyncio.create_task(leave()))
        await asyncio.wait(leaving, timeout=1)  # without the lock, it ends before the review is stored
        return AUTUMN

    async with database.writing() as session:
        await reviews.request_review(session, autumn, nobody, ada, lesson, exercise, "a")
    await asyncio.gather(*leaving)
    async with database.session() as session:
        assert await session.scalar(select(Review.state)) == ReviewState.withdrawn


async def test_a_lesson_that_became_a_draft_earns_what_was_waiting_and_takes_nothing_new(
    database: Database, catalog: Catalog, tmp_path: Path
) -> None:
    ada, grace = [await store_account(database, name=name) for name in ("Ada", "Grace")]
    review = await waiting_review(database, ada)
    progress = ProgressService(catalog, AchievementCatalog(catalog, quiet=True))
    file = tmp_path / "lessons" / LESSON / "lesson.md"
    file.write_text(file.read_text().replace("status: published", "status: draft"))
    catalog.reload()

    async with database.writing() as session:
        await review_decisions.decide(session, progress, catalog, review, grace, "", (), accepts=True)
    async with database.session() as session:
        assert await session.scalar(select(LedgerEntry.subject)) == f"{LESSON}#double"

    draft = catalog.with_drafts.find_lesson(LESSON, "en")
    assert draft is not None
    draft = with_exercise(draft, reviewed=True)
    exercise = draft.cell("double")
    assert exercise is not None

    async def autumn(_session: AsyncSession, _learner: str, _course: str) -> Sequence[ReviewGroup]:
        return AUTUMN

    async with database.writing() as session:
        with pytest.raises(ReviewNotOffered):
            await reviews.request_review(session, autumn, nobody, ada, draft, exercise, AUTUMN[0].id)
        assert await reviews.load_exercise_reviews(session, autumn, ada.learner_id, draft) == {}


def learner_review(state: ReviewState, run: str) -> LearnerReview:
    return LearnerReview("1", run, state, now(), None, "")


@pytest.mark.parametrize(
    ("shown", "passed", "may_ask"),
    [
        (ExerciseReviews(AUTUMN), None, False),
        (ExerciseReviews(AUTUMN), "r1", True),
        (ExerciseReviews(()), "r1", False),
        (ExerciseReviews(AUTUMN, [learner_review(ReviewState.waiting, "r1")]), "r2", False),
        (ExerciseReviews(AUTUMN, [learner_review(ReviewState.changes_requested, "r1")]), "r1", False),
        (ExerciseReviews(AUTUMN, [learner_review(ReviewState.changes_requested, "r1")]), "r2", True),
        (ExerciseReviews(AUTUMN, [learner_review(ReviewState.accepted, "r1")]), "r2", False),
    ],
)
def test_when_a_learner_may_ask_for_a_review(shown: ExerciseReviews, passed: str | None, may_ask: bool) -> None:
    assert shown.may_ask(passed) is may_ask
