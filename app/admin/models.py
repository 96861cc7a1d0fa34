"""The table of the audit log."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index, String
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Base, UtcDateTime


class AuditEntry(Base):
    """One action of an admin. It names accounts by their ID, and stays when one of them is deleted."""

    __tablename__ = "audit_entries"
    __table_args__ = (
        Index("ix_audit_entries_created_at", "created_at"),
        Index("ix_audit_entries_action", "action", "id"),
        Index("ix_audit_entries_actor_id", "actor_id", "id"),
        Index("ix_audit_entries_account_id", "account_id", "id"),
    )

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    """Sorts by time."""
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    action: Mapped[str] = mapped_column(String(40))
    """An ``AuditAction``."""
    actor_id: Mapped[str | None] = mapped_column(String(32))
    """The account of the admin; None for a command."""
    operator: Mapped[str] = mapped_column(String(64))
    """Who ran the command: a user of the operating system."""
    account_id: Mapped[str | None] = mapped_column(String(32))
    """The account that was changed, if it was one."""
    detail: Mapped[str] = mapped_column(String(300))
    """What it was changed to, or what else was changed."""
