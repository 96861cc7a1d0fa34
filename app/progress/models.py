"""The tables of progress. A learner is known by ``learner_id``: a visitor's id, or the one of an account."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index, String
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Base, UtcDateTime


class LedgerEntry(Base):
    """One fact about a learner, with the XP it was worth: the ledger. Rows are added, never changed.

    The key is what makes an award happen once: whoever comes second finds the row there. Sums over it are all there is
    of XP, levels and achievements.
    """

    __tablename__ = "ledger_entries"
    __table_args__ = (Index("ix_ledger_entries_learner_id_occurred_at", "learner_id", "occurred_at"),)

    learner_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    kind: Mapped[str] = mapped_column(String(24), primary_key=True)
    """What kind of fact: ``cell``, ``lesson``, ``module``, ``topology``, ``strategy``, ``achievement``, ``day``, …"""
    subject: Mapped[str] = mapped_column(String(320), primary_key=True)
    """Of what: ``course/lesson#cell``, ``gpu:8``, ``MirroredStrategy``, ``2026-11-21``, …"""
    xp: Mapped[int]
    occurred_at: Mapped[datetime] = mapped_column(UtcDateTime)


class LessonProgress(Base):
    """How far a learner is in a lesson. Each moment is set once, to the earliest; merging takes the earliest too."""

    __tablename__ = "lesson_progress"

    learner_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    lesson: Mapped[str] = mapped_column(String(200), primary_key=True)
    """``course/slug``."""
    started_at: Mapped[datetime] = mapped_column(UtcDateTime)
    end_reached_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    completed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    revisited_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """First opened again on a later day after its completion."""
    last_seen_at: Mapped[datetime] = mapped_column(UtcDateTime)
    """When it was last open: "continue where you left off" goes to the latest."""
    anchor: Mapped[str] = mapped_column(String(100), default="")
    """The id of the heading or cell that was last in view."""


class LearnerTimeZone(Base):
    """The time zone that a learner's browser last named. An account that has chosen one goes by that."""

    __tablename__ = "learner_time_zones"

    learner_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    time_zone: Mapped[str] = mapped_column(String(64))
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)
