"""The tables of feedback. IDs grow with time, so every list is in their order and pages continue after the last ID."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlalchemy import CheckConstraint, ForeignKey, Index, String, Text, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Base, UtcDateTime


class ProblemKind(StrEnum):
    text = "text"
    code = "code"
    translation = "translation"
    page = "page"
    other = "other"


_KINDS = ", ".join(f"'{kind}'" for kind in ProblemKind)
IS_OPEN, HAS_COMMENT = text("resolved_at IS NULL"), text("comment <> ''")
"""Conditions of partial indexes. Queries must repeat them word for word, or SQLite does not use the index."""


class ProblemReport(Base):
    """A problem that somebody reported from any page."""

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
    """Identical if one form sends the same text twice."""
    learner_id: Mapped[str | None] = mapped_column(String(64))
    """The learner who reported it; None once their account is deleted."""
    kind: Mapped[str] = mapped_column(String(16))
    page: Mapped[str] = mapped_column(String(300))
    """The path of the page; empty if unknown."""
    lesson: Mapped[str] = mapped_column(String(200), default="")
    """``course/slug``; empty if the page belongs to no lesson."""
    cell: Mapped[str] = mapped_column(String(100), default="")
    text: Mapped[str] = mapped_column(Text)
    language: Mapped[str] = mapped_column(String(8))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    resolved_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    resolved_by: Mapped[str | None] = mapped_column(ForeignKey("accounts.id", ondelete="SET NULL"))
    note: Mapped[str] = mapped_column(String(500), default="")
    """The note of the instructor who resolved or reopened the report."""


class LessonVote(Base):
    """A learner's vote on whether a lesson was helpful; a new vote replaces the old one."""

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
    """Replaced whenever the vote changes."""
    helpful: Mapped[bool]
    comment: Mapped[str] = mapped_column(String(500), default="")
    language: Mapped[str] = mapped_column(String(8))
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)
