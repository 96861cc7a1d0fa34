"""The tables of notifications, and of the kinds that an account gets no emails about."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlalchemy import CheckConstraint, ForeignKey, Index, String, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Base, UtcDateTime


class NotificationKind(StrEnum):
    reply = "reply"
    """A comment in a thread that the account wrote in. Subject: the comment."""
    mention = "mention"
    """A comment that mentions the account. Subject: the comment."""
    answered = "answered"
    """A reply that an instructor marked as the answer to the account's question. Subject: the reply."""
    achievement = "achievement"
    """A new achievement. Subject: the achievement."""
    review = "review"
    """A decision about code that the account submitted for review. Subject: the review."""
    review_request = "review-request"
    """Learners of a group have submitted code for review by its staff. Subject: the group."""


EMAILED_KINDS = (
    NotificationKind.reply,
    NotificationKind.mention,
    NotificationKind.answered,
    NotificationKind.review,
    NotificationKind.review_request,
)
"""The kinds that are also emailed."""
_KINDS = ", ".join(f"'{kind}'" for kind in NotificationKind)
_UNREAD, _WAITING = text("read_at IS NULL"), text("read_at IS NULL AND emailed_at IS NULL")


class Notification(Base):
    """A notification of one account; at most one per kind and subject. IDs grow with time."""

    __tablename__ = "notifications"
    __table_args__ = (
        CheckConstraint(f"kind IN ({_KINDS})", name="kind_known"),
        UniqueConstraint("account_id", "kind", "subject", name="uq_notifications_account_id_kind_subject"),
        Index("ix_notifications_account_id", "account_id", "id"),
        Index("ix_notifications_unread", "account_id", sqlite_where=_UNREAD, postgresql_where=_UNREAD),
        Index("ix_notifications_waiting", "created_at", sqlite_where=_WAITING, postgresql_where=_WAITING),
        Index("ix_notifications_created_at", "created_at"),
        Index("ix_notifications_subject", "subject"),
        Index("ix_notifications_actor_id", "actor_id"),
    )

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"))
    """The notified account."""
    kind: Mapped[str] = mapped_column(String(16))
    subject: Mapped[str] = mapped_column(String(200))
    actor_id: Mapped[str | None] = mapped_column(ForeignKey("accounts.id", ondelete="SET NULL"))
    """The account that caused it; None if there is none or it was deleted."""
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    read_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    emailed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """When an email about it was put into the outbox, exactly as that email has it."""


class EmailOptOut(Base):
    """An account's choice to get no emails about one kind."""

    __tablename__ = "email_opt_outs"
    __table_args__ = (CheckConstraint(f"kind IN ({_KINDS})", name="kind_known"),)

    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True)
    kind: Mapped[str] = mapped_column(String(16), primary_key=True)
