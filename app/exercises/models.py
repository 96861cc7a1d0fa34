"""The tables of exercises: verdicts of checks, learners' answers, and reviews."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlalchemy import CheckConstraint, ForeignKey, Index, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Base, UtcDateTime


class Verdict(StrEnum):
    """The verdict of an exercise's checks on a submission."""

    passed = "passed"
    failed = "failed"
    fault = "fault"
    """A check itself failed. Does not count as a try."""
    lost = "lost"
    """The judgement was stopped or lost. Does not count as a try."""


_VERDICTS = ", ".join(f"'{verdict}'" for verdict in Verdict)


class Submission(Base):
    """One try at an exercise. Learner, exercise, code and time are in its run; deleting the run deletes it."""

    __tablename__ = "submissions"
    __table_args__ = (
        CheckConstraint(f"verdict IN ({_VERDICTS})", name="verdict_known"),
        UniqueConstraint("idempotency_key", name="uq_submissions_idempotency_key"),
    )

    run_id: Mapped[str] = mapped_column(String(64), ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    idempotency_key: Mapped[str] = mapped_column(String(64))
    """From the browser: identical if one press of Check is sent again because its response was lost."""
    verdict: Mapped[str | None] = mapped_column(String(16))
    """None until the run has ended."""
    results: Mapped[str] = mapped_column(Text)
    """The exercise's checks at the time of submission, with their results (``verdicts.CheckResult``), as JSON."""
    lesson_digest: Mapped[str] = mapped_column(String(64))
    """The version of the lesson that judged it."""


class QuizAnswer(Base):
    """A learner's answer to a quiz. The first answer is kept; pages show the latest."""

    __tablename__ = "quiz_answers"

    learner_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    lesson: Mapped[str] = mapped_column(String(200), primary_key=True)
    """``course/slug``."""
    quiz: Mapped[str] = mapped_column(String(100), primary_key=True)
    first_choices: Mapped[str] = mapped_column(String(200))
    """Numbers of choices from 0, separated by commas."""
    first_right: Mapped[bool]
    choices: Mapped[str] = mapped_column(String(200))
    answered_at: Mapped[datetime] = mapped_column(UtcDateTime)
    """The time of the first answer."""
    tries: Mapped[int]


class PredictionAnswer(Base):
    """A learner's guess before a run (or that it was skipped), and the result of the run."""

    __tablename__ = "prediction_answers"
    __table_args__ = (Index("ix_prediction_answers_guesses", "lesson", "prediction", "informed", "guess"),)

    learner_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    lesson: Mapped[str] = mapped_column(String(200), primary_key=True)
    prediction: Mapped[str] = mapped_column(String(100), primary_key=True)
    guess: Mapped[str | None] = mapped_column(String(200))
    """A number, the number of a choice from 0, or numbers in order separated by commas; None if it was skipped."""
    informed: Mapped[bool]
    """Whether the learner had run the cell before; if so, a guess is not shown to others and earns nothing."""
    answered_at: Mapped[datetime] = mapped_column(UtcDateTime)
    result: Mapped[str | None] = mapped_column(String(200))
    """The result of the first run that showed it after the guess, in the format of guesses; None until then."""
    right: Mapped[bool | None]
    """Whether guess and result agree; None without a result or if the prediction was skipped."""


class ReviewState(StrEnum):
    waiting = "waiting"
    withdrawn = "withdrawn"
    """The learner withdrew it, and may submit the same code again; or the learner left the group."""
    changes_requested = "changes-requested"
    accepted = "accepted"


DECIDED = (ReviewState.changes_requested, ReviewState.accepted)
_STATES = ", ".join(f"'{state}'" for state in ReviewState)


class Review(Base):
    """A passed submission that a learner asks the instructors of a group to review. At most one per submission.

    It keeps what was reviewed: the run may be deleted, and the learner changes the cell. IDs grow with time.
    """

    __tablename__ = "reviews"
    __table_args__ = (
        CheckConstraint(f"state IN ({_STATES})", name="state_known"),
        UniqueConstraint("run_id", name="uq_reviews_run_id"),
        Index("ix_reviews_account_id", "account_id", "lesson", "exercise"),
        Index("ix_reviews_group_id", "group_id", "state", "requested_at"),
        Index("ix_reviews_reviewer_id", "reviewer_id"),
    )

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"))
    """The learner's."""
    group_id: Mapped[str | None] = mapped_column(ForeignKey("groups.id", ondelete="SET NULL"))
    """The group whose instructors review it; None once that group was deleted."""
    lesson: Mapped[str] = mapped_column(String(200))
    """``course/slug``."""
    exercise: Mapped[str] = mapped_column(String(100))
    run_id: Mapped[str] = mapped_column(String(64))
    code: Mapped[str] = mapped_column(Text)
    """With ``\\n`` as the end of each line."""
    output: Mapped[str] = mapped_column(Text)
    """The beginning of what the code printed while it was checked."""
    results: Mapped[str] = mapped_column(Text)
    """Of the checks, as in ``Submission``."""
    state: Mapped[str] = mapped_column(String(24))
    requested_at: Mapped[datetime] = mapped_column(UtcDateTime)
    reviewer_id: Mapped[str | None] = mapped_column(ForeignKey("accounts.id", ondelete="SET NULL"))
    """The account that decided; None until then, and after that account was deleted."""
    decided_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    remark: Mapped[str] = mapped_column(Text, default="")
    """About the whole, in Markdown. Written with the decision."""


class ReviewComment(Base):
    """A comment on one line of the code in a review. The learner sees it once the review is decided."""

    __tablename__ = "review_comments"
    __table_args__ = (
        Index("ix_review_comments_review_id", "review_id", "line"),
        Index("ix_review_comments_author_id", "author_id"),
    )

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    review_id: Mapped[str] = mapped_column(ForeignKey("reviews.id", ondelete="CASCADE"))
    author_id: Mapped[str | None] = mapped_column(ForeignKey("accounts.id", ondelete="SET NULL"))
    line: Mapped[int]
    """From 1."""
    source: Mapped[str] = mapped_column(Text)
    """In Markdown."""
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
