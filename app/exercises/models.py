"""The tables of exercises: what checks said of submissions, and what learners answered."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlalchemy import CheckConstraint, ForeignKey, Index, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Base, UtcDateTime


class Verdict(StrEnum):
    """What the checks of an exercise say of a submission."""

    passed = "passed"
    failed = "failed"
    fault = "fault"
    """A check itself failed. It counts as no try."""
    lost = "lost"
    """The judgement was stopped or lost before its end. It counts as no try."""


_VERDICTS = ", ".join(f"'{verdict}'" for verdict in Verdict)


class Submission(Base):
    """One try at an exercise. Learner, exercise, code and moment are its run's; with the run it is deleted."""

    __tablename__ = "submissions"
    __table_args__ = (
        CheckConstraint(f"verdict IN ({_VERDICTS})", name="verdict_known"),
        UniqueConstraint("idempotency_key", name="uq_submissions_idempotency_key"),
    )

    run_id: Mapped[str] = mapped_column(String(64), ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    idempotency_key: Mapped[str] = mapped_column(String(64))
    """From the browser: the same for the same press of Check, sent again because its answer was lost."""
    verdict: Mapped[str | None] = mapped_column(String(16))
    """None until the run has ended."""
    results: Mapped[str] = mapped_column(Text)
    """Every check of the exercise at the moment of submission, and what it said (``verdicts.CheckResult``), as JSON."""
    lesson_digest: Mapped[str] = mapped_column(String(64))
    """The edition of the lesson that it was judged by."""


class QuizAnswer(Base):
    """A learner's answer to a quiz. The first one stays; the latest is what the page shows."""

    __tablename__ = "quiz_answers"

    learner_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    lesson: Mapped[str] = mapped_column(String(200), primary_key=True)
    """``course/slug``."""
    quiz: Mapped[str] = mapped_column(String(100), primary_key=True)
    first_choices: Mapped[str] = mapped_column(String(200))
    """Numbers of choices from 0, with commas."""
    first_right: Mapped[bool]
    choices: Mapped[str] = mapped_column(String(200))
    answered_at: Mapped[datetime] = mapped_column(UtcDateTime)
    """The moment of the first answer."""
    tries: Mapped[int]


class PredictionAnswer(Base):
    """A learner's guess before a run, or that they skipped it; and what the run showed."""

    __tablename__ = "prediction_answers"
    __table_args__ = (Index("ix_prediction_answers_guesses", "lesson", "prediction", "informed", "guess"),)

    learner_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    lesson: Mapped[str] = mapped_column(String(200), primary_key=True)
    prediction: Mapped[str] = mapped_column(String(100), primary_key=True)
    guess: Mapped[str | None] = mapped_column(String(200))
    """A number, the number of a choice from 0, or numbers in order with commas; None if it was skipped."""
    informed: Mapped[bool]
    """The learner had run the cell before they guessed: others are not shown the guess."""
    answered_at: Mapped[datetime] = mapped_column(UtcDateTime)
    result: Mapped[str | None] = mapped_column(String(200))
    """What the first run after the guess showed, written as a guess is; None until then."""
    right: Mapped[bool | None]
    """Whether guess and result agree; None until there is a result, and if it was skipped."""
