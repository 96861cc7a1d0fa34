"""The tables of notifications: what somebody is told, and of which kinds they want no mail."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlalchemy import CheckConstraint, ForeignKey, Index, String, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Base, UtcDateTime


class NotificationKind(StrEnum):
    """What somebody is told of."""

    reply = "reply"
    """A comment in a thread they wrote in. Subject: the comment."""
    mention = "mention"
    """A comment that names them. Subject: the comment."""
    answered = "answered"
    """A reply that an instructor says answers their question. Subject: the reply."""
    achievement = "achievement"
    """Subject: the achievement."""


EMAILED_KINDS = (NotificationKind.reply, NotificationKind.mention, NotificationKind.answered)
"""Those that also go out by mail."""
_KINDS = ", ".join(f"'{kind}'" for kind in NotificationKind)
_UNREAD, _WAITING = text("read_at IS NULL"), text("read_at IS NULL AND emailed_at IS NULL")


class Notification(Base):
    """That something happened, told to one account, once. An id grows with time."""

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
    """Who is told."""
    kind: Mapped[str] = mapped_column(String(16))
    subject: Mapped[str] = mapped_column(String(200))
    actor_id: Mapped[str | None] = mapped_column(ForeignKey("accounts.id", ondelete="SET NULL"))
    """Who did it; None for nobody, or once that account is deleted."""
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    read_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    emailed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """When a mail about it went into the outbox."""


class EmailOptOut(Base):
    """That an account wants no mail about one kind."""

    __tablename__ = "email_opt_outs"
    __table_args__ = (CheckConstraint(f"kind IN ({_KINDS})", name="kind_known"),)

    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True)
    kind: Mapped[str] = mapped_column(String(16), primary_key=True)
