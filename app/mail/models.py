"""The table of mails that wait to be sent."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlalchemy import CheckConstraint, ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Base, UtcDateTime


class EmailState(StrEnum):
    """Where a mail is. One that was sent has no row any more."""

    waiting = "waiting"
    sending = "sending"
    """A sender has it."""
    failed = "failed"
    """The server refused it for good, or every try failed."""
    unconfirmed = "unconfirmed"
    """The connection broke when the server may have had it already: it is not sent again."""


class OutboxEmail(Base):
    """One mail to one person, as it goes out. It may hold a link that opens an account: it goes once it is sent."""

    __tablename__ = "outbox"
    __table_args__ = (
        CheckConstraint("state IN ('waiting', 'sending', 'failed', 'unconfirmed')", name="state_known"),
        Index("ix_outbox_state_due_at", "state", "due_at"),
        Index("ix_outbox_account_id", "account_id"),
    )

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    account_id: Mapped[str | None] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"))
    """Whom it is about: it is not sent without them. None: it is sent, whatever becomes of anyone."""
    recipient: Mapped[str] = mapped_column(String(320))
    subject: Mapped[str] = mapped_column(String(300))
    text: Mapped[str] = mapped_column(Text)
    html: Mapped[str] = mapped_column(Text)
    unsubscribe_url: Mapped[str] = mapped_column(String(500), default="")
    state: Mapped[str] = mapped_column(String(16), default=EmailState.waiting)
    attempts: Mapped[int] = mapped_column(default=0)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    due_at: Mapped[datetime] = mapped_column(UtcDateTime)
    """While it waits: not before. While it is sent: since."""
    last_error: Mapped[str] = mapped_column(String(300), default="")
    """Why the last attempt failed."""
