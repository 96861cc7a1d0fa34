"""The tables of progress. A learner is identified by ``learner_id``: a visitor's ID or an account's."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index, String
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Base, UtcDateTime


class LedgerEntry(Base):
    """The ledger: one learning event of a learner, with its XP. Rows are inserted, never changed.

    The primary key makes each award happen only once. XP, levels and achievements are sums over this table.
    """

    __tablename__ = "ledger_entries"
    __table_args__ = (Index("ix_ledger_entries_learner_id_occurred_at", "learner_id", "occurred_at"),)

    learner_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    kind: Mapped[str] = mapped_column(String(24), primary_key=True)
    """The kind of event: ``cell``, ``lesson``, ``module``, ``topology``, ``strategy``, ``achievement``, ``day``, …"""
    subject: Mapped[str] = mapped_column(String(320), primary_key=True)
    """What the event is about: ``course/lesson#cell``, ``gpu:8``, ``MirroredStrategy``, ``2026-11-21``, …"""
    xp: Mapped[int]
    occurred_at: Mapped[datetime] = mapped_column(UtcDateTime)


class LessonProgress(Base):
    """A learner's progress in a lesson. Each timestamp is set once, to the earliest; so is it when learners merge."""

    __tablename__ = "lesson_progress"

    learner_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    lesson: Mapped[str] = mapped_column(String(200), primary_key=True)
    """``course/slug``."""
    started_at: Mapped[datetime] = mapped_column(UtcDateTime)
    end_reached_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    completed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    revisited_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """When it was first opened again on a day after its completion."""
    last_seen_at: Mapped[datetime] = mapped_column(UtcDateTime)
    """When it was last open: "Continue where you left off" leads to the lesson with the latest."""
    anchor: Mapped[str] = mapped_column(String(100), default="")
    """The ID of the heading or cell that was last in view."""


class LearnerTimeZone(Base):
    """The time zone that a learner's browser last reported. A zone chosen in an account takes precedence."""

    __tablename__ = "learner_time_zones"

    learner_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    time_zone: Mapped[str] = mapped_column(String(64))
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)
