"""The tables of exercises: verdicts of checks, and learners' answers."""

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
