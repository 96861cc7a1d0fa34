"""The tables of comments. IDs grow with time, so every list is in their order and pages continue after the last ID."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlalchemy import CheckConstraint, ForeignKey, Index, String, Text, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Base, UtcDateTime


class CommentState(StrEnum):
    shown = "shown"
    held = "held"
    """Waiting for an instructor's approval; its author sees it."""
    hidden = "hidden"
    """Hidden by an instructor; its author sees it and the reason."""
    deleted = "deleted"
    """Deleted by its author, with its text and versions."""


class ReactionKind(StrEnum):
    """A reaction that a reader can add with one click."""

    helpful = "helpful"
    same = "same"
    """I have the same question or saw the same thing."""
    thanks = "thanks"

    @property
    def counter(self) -> str:
        """The column with the number of these reactions."""
        return f"{self}_count"


_STATES = ", ".join(f"'{state}'" for state in CommentState)
_ROOT, _REPLY = text("thread_id IS NULL"), text("thread_id IS NOT NULL")
HELD, REPORTED, PINNED = text("state = 'held'"), text("report_count > 0"), text("pinned")
"""Conditions of partial indexes. Queries must repeat them word for word, or SQLite does not use the index."""


class Comment(Base):
    """A comment: the first one of a thread, or a reply. Counters change in the same transaction as what they count."""

    __tablename__ = "comments"
    __table_args__ = (
        CheckConstraint(f"state IN ({_STATES})", name="state_known"),
        UniqueConstraint("author_id", "idempotency_key", name="uq_comments_author_id_idempotency_key"),
        Index("ix_comments_threads", "lesson", "cell", "id", sqlite_where=_ROOT, postgresql_where=_ROOT),
        Index("ix_comments_pinned", "lesson", "cell", "id", sqlite_where=PINNED, postgresql_where=PINNED),
        Index("ix_comments_thread_id", "thread_id", "id", sqlite_where=_REPLY, postgresql_where=_REPLY),
        Index("ix_comments_author_id", "author_id", "id"),
        Index("ix_comments_held", "id", sqlite_where=HELD, postgresql_where=HELD),
        Index("ix_comments_reported", "id", sqlite_where=REPORTED, postgresql_where=REPORTED),
        Index("ix_comments_renderer_version", "renderer_version"),
    )

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    lesson: Mapped[str] = mapped_column(String(200))
    """``course/slug``."""
    cell: Mapped[str] = mapped_column(String(100), default="")
    """The cell it is about; empty for the lesson as a whole."""
    thread_id: Mapped[str | None] = mapped_column(ForeignKey("comments.id", ondelete="CASCADE"))
    """The first comment of the thread; None for that comment itself."""
    author_id: Mapped[str | None] = mapped_column(ForeignKey("accounts.id", ondelete="SET NULL"))
    """None once the account is deleted."""
    idempotency_key: Mapped[str] = mapped_column(String(64))
    """Identical if one form sends the same text twice."""
    source: Mapped[str] = mapped_column(Text)
    html: Mapped[str] = mapped_column(Text)
    """The source as safe HTML, made by ``comments.markdown``."""
    renderer_version: Mapped[int]
    """The version of ``comments.markdown`` that made the HTML."""
    language: Mapped[str] = mapped_column(String(8))
    state: Mapped[str] = mapped_column(String(16), default=CommentState.shown)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    edited_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    edit_count: Mapped[int] = mapped_column(default=0)
    pinned: Mapped[bool] = mapped_column(default=False)
    answer_id: Mapped[str | None] = mapped_column(String(32))
    """Of a thread's first comment: the reply that an instructor marked as the answer."""
    reply_count: Mapped[int] = mapped_column(default=0)
    """Of a thread's first comment: the number of shown replies."""
    helpful_count: Mapped[int] = mapped_column(default=0)
    same_count: Mapped[int] = mapped_column(default=0)
    thanks_count: Mapped[int] = mapped_column(default=0)
    report_count: Mapped[int] = mapped_column(default=0)
    """Reports that no instructor has resolved yet."""
    reason: Mapped[str] = mapped_column(String(500), default="")
    """Why an instructor hid it."""
    moderated_by: Mapped[str | None] = mapped_column(ForeignKey("accounts.id", ondelete="SET NULL"))
    moderated_at: Mapped[datetime | None] = mapped_column(UtcDateTime)

    @property
    def root_id(self) -> str:
        """The first comment of the thread."""
        return self.thread_id or self.id


class CommentVersion(Base):
    """An earlier text of a comment."""

    __tablename__ = "comment_versions"

    comment_id: Mapped[str] = mapped_column(ForeignKey("comments.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    source: Mapped[str] = mapped_column(Text)
    written_at: Mapped[datetime] = mapped_column(UtcDateTime)


class CommentReaction(Base):
    """A reaction of an account to a comment, at most one of each kind."""

    __tablename__ = "comment_reactions"
    __table_args__ = (Index("ix_comment_reactions_account_id", "account_id"),)

    comment_id: Mapped[str] = mapped_column(ForeignKey("comments.id", ondelete="CASCADE"), primary_key=True)
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True)
    kind: Mapped[str] = mapped_column(String(16), primary_key=True)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class CommentReport(Base):
    """A report about a comment, at most one per account: a second one replaces it."""

    __tablename__ = "comment_reports"
    __table_args__ = (Index("ix_comment_reports_account_id", "account_id"),)

    comment_id: Mapped[str] = mapped_column(ForeignKey("comments.id", ondelete="CASCADE"), primary_key=True)
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True)
    reason: Mapped[str] = mapped_column(String(500))
    reported_at: Mapped[datetime] = mapped_column(UtcDateTime)
    resolved: Mapped[bool] = mapped_column(default=False)


class CommentCounter(Base):
    """The number of shown comments of a lesson or one of its cells."""

    __tablename__ = "comment_counters"

    lesson: Mapped[str] = mapped_column(String(200), primary_key=True)
    cell: Mapped[str] = mapped_column(String(100), primary_key=True)
    comment_count: Mapped[int]
