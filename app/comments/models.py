"""The tables of comments. An id grows with time: every list is in its order and goes on behind the last one shown."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlalchemy import CheckConstraint, ForeignKey, Index, String, Text, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Base, UtcDateTime


class CommentState(StrEnum):
    """Who sees a comment."""

    shown = "shown"
    held = "held"
    """Waits for an instructor; its author sees it."""
    hidden = "hidden"
    """An instructor took it out of sight; its author sees it and why."""
    deleted = "deleted"
    """Its author took it back: text and versions are gone."""


class ReactionKind(StrEnum):
    """What a reader can say without writing."""

    helpful = "helpful"
    same = "same"
    """I have the same question, or saw the same."""
    thanks = "thanks"

    @property
    def counter(self) -> str:
        """The column of a comment that counts it."""
        return f"{self}_count"


_STATES = ", ".join(f"'{state}'" for state in CommentState)
_ROOT, _REPLY = text("thread_id IS NULL"), text("thread_id IS NOT NULL")
HELD, REPORTED, PINNED = text("state = 'held'"), text("report_count > 0"), text("pinned")
"""What an index of some comments is about. A query says it in the same words, or SQLite does not see that it fits."""


class Comment(Base):
    """A comment: one that begins a thread, or a reply in it. Counters change in the transaction of what they count."""

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
    """The comment that began the thread; None for that one itself."""
    author_id: Mapped[str | None] = mapped_column(ForeignKey("accounts.id", ondelete="SET NULL"))
    """None once the account is deleted."""
    idempotency_key: Mapped[str] = mapped_column(String(64))
    """The same for the same text sent twice from one form."""
    source: Mapped[str] = mapped_column(Text)
    html: Mapped[str] = mapped_column(Text)
    """What ``comments.markdown`` made of the source, safe to show."""
    renderer_version: Mapped[int]
    """The version of ``comments.markdown`` that made it."""
    language: Mapped[str] = mapped_column(String(8))
    state: Mapped[str] = mapped_column(String(16), default=CommentState.shown)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    edited_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    edit_count: Mapped[int] = mapped_column(default=0)
    pinned: Mapped[bool] = mapped_column(default=False)
    answer_id: Mapped[str | None] = mapped_column(String(32))
    """Of the one that began a thread: the comment in it that an instructor says answers it."""
    reply_count: Mapped[int] = mapped_column(default=0)
    """Of the one that began a thread: the replies that are shown."""
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
        """The comment that began the thread."""
        return self.thread_id or self.id


class CommentVersion(Base):
    """What a comment said before an edit."""

    __tablename__ = "comment_versions"

    comment_id: Mapped[str] = mapped_column(ForeignKey("comments.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    source: Mapped[str] = mapped_column(Text)
    written_at: Mapped[datetime] = mapped_column(UtcDateTime)


class CommentReaction(Base):
    """That somebody reacted to a comment, once of each kind."""

    __tablename__ = "comment_reactions"
    __table_args__ = (Index("ix_comment_reactions_account_id", "account_id"),)

    comment_id: Mapped[str] = mapped_column(ForeignKey("comments.id", ondelete="CASCADE"), primary_key=True)
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True)
    kind: Mapped[str] = mapped_column(String(16), primary_key=True)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class CommentReport(Base):
    """That somebody finds something wrong with a comment. Once for each: a second one says it anew."""

    __tablename__ = "comment_reports"
    __table_args__ = (Index("ix_comment_reports_account_id", "account_id"),)

    comment_id: Mapped[str] = mapped_column(ForeignKey("comments.id", ondelete="CASCADE"), primary_key=True)
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True)
    reason: Mapped[str] = mapped_column(String(500))
    reported_at: Mapped[datetime] = mapped_column(UtcDateTime)
    resolved: Mapped[bool] = mapped_column(default=False)


class CommentCounter(Base):
    """How many comments are shown at a lesson or one of its cells."""

    __tablename__ = "comment_counters"

    lesson: Mapped[str] = mapped_column(String(200), primary_key=True)
    cell: Mapped[str] = mapped_column(String(100), primary_key=True)
    comment_count: Mapped[int]
