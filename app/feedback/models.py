"""The tables of feedback. An id grows with time: every list is in its order and goes on behind the last one shown."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlalchemy import CheckConstraint, ForeignKey, Index, String, Text, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Base, UtcDateTime


class ProblemKind(StrEnum):
    """What a problem is about."""

    text = "text"
    code = "code"
    translation = "translation"
    page = "page"
    other = "other"


_KINDS = ", ".join(f"'{kind}'" for kind in ProblemKind)
IS_OPEN, HAS_COMMENT = text("resolved_at IS NULL"), text("comment <> ''")
"""What an index of some rows is about. A query says it in the same words, or SQLite does not see that it fits."""


class ProblemReport(Base):
    """A problem that somebody reported, from any page."""

    __tablename__ = "problem_reports"
    __table_args__ = (
        CheckConstraint(f"kind IN ({_KINDS})", name="kind_known"),
        UniqueConstraint("idempotency_key", name="uq_problem_reports_idempotency_key"),
        Index("ix_problem_reports_open", "id", sqlite_where=IS_OPEN, postgresql_where=IS_OPEN),
        Index("ix_problem_reports_lesson", "lesson", "id"),
        Index("ix_problem_reports_kind", "kind", "id"),
        Index("ix_problem_reports_learner_id", "learner_id"),
    )

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    idempotency_key: Mapped[str] = mapped_column(String(64))
    """The same for the same text sent twice from one form."""
    learner_id: Mapped[str | None] = mapped_column(String(64))
    """Who reported it; None once their account is deleted."""
    kind: Mapped[str] = mapped_column(String(16))
    page: Mapped[str] = mapped_column(String(300))
    """The path it was reported from; empty if that is not known."""
    lesson: Mapped[str] = mapped_column(String(200), default="")
    """``course/slug``; empty for a page that is no lesson's."""
    cell: Mapped[str] = mapped_column(String(100), default="")
    text: Mapped[str] = mapped_column(Text)
    language: Mapped[str] = mapped_column(String(8))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    resolved_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    resolved_by: Mapped[str | None] = mapped_column(ForeignKey("accounts.id", ondelete="SET NULL"))
    note: Mapped[str] = mapped_column(String(500), default="")
    """What an instructor wrote when the report was resolved or reopened."""


class LessonVote(Base):
    """Whether a lesson was helpful to a learner; the latest answer counts."""

    __tablename__ = "lesson_votes"
    __table_args__ = (
        UniqueConstraint("id", name="uq_lesson_votes_id"),
        Index("ix_lesson_votes_lesson", "lesson", "helpful"),
        Index("ix_lesson_votes_comment", "id", sqlite_where=HAS_COMMENT, postgresql_where=HAS_COMMENT),
        Index("ix_lesson_votes_lesson_comment", "lesson", "id", sqlite_where=HAS_COMMENT, postgresql_where=HAS_COMMENT),
    )

    learner_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    lesson: Mapped[str] = mapped_column(String(200), primary_key=True)
    id: Mapped[str] = mapped_column(String(32))
    """Another one whenever the answer changes."""
    helpful: Mapped[bool]
    comment: Mapped[str] = mapped_column(String(500), default="")
    language: Mapped[str] = mapped_column(String(8))
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)
