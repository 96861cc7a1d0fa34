"""The table of outgoing emails."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlalchemy import CheckConstraint, ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Base, UtcDateTime


class EmailState(StrEnum):
    """The state of an email. A sent one has no row anymore."""

    waiting = "waiting"
    sending = "sending"
    """A worker is sending it."""
    failed = "failed"
    """The server rejected it permanently, or every attempt failed."""
    unconfirmed = "unconfirmed"
    """The connection broke when the server may already have accepted it: it is not sent again."""


class OutboxEmail(Base):
    """An email to one person. It may contain a link that signs in to an account, so it is deleted once sent."""

    __tablename__ = "outbox"
    __table_args__ = (
        CheckConstraint("state IN ('waiting', 'sending', 'failed', 'unconfirmed')", name="state_known"),
        Index("ix_outbox_state_due_at", "state", "due_at"),
        Index("ix_outbox_account_id", "account_id"),
        Index("ix_outbox_sender_id", "sender_id"),
    )

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    account_id: Mapped[str | None] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"))
    """The account that the email is about; deleting it deletes the email. None means that it is always sent."""
    sender_id: Mapped[str | None] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"))
    """The account that the email names as its writer, if any; deleting it deletes the email."""
    recipient: Mapped[str] = mapped_column(String(320))
    subject: Mapped[str] = mapped_column(String(300))
    text: Mapped[str] = mapped_column(Text)
    html: Mapped[str] = mapped_column(Text)
    unsubscribe_url: Mapped[str] = mapped_column(String(500), default="")
    state: Mapped[str] = mapped_column(String(16), default=EmailState.waiting)
    attempts: Mapped[int] = mapped_column(default=0)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    due_at: Mapped[datetime] = mapped_column(UtcDateTime)
    """While waiting: the earliest time to send. While sending: since when."""
    last_error: Mapped[str] = mapped_column(String(300), default="")
    """Why the last attempt failed."""
