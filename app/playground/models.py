"""The table of shared copies of playgrounds."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Base, UtcDateTime


class SharedPlayground(Base):
    """A copy of a playground that anyone who knows its ID can read, run and fork. It never changes."""

    __tablename__ = "shared_playgrounds"
    __table_args__ = (Index("ix_shared_playgrounds_account_id", "account_id", "created_at"),)

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    """Unguessable: whoever knows it can read the copy."""
    account_id: Mapped[str] = mapped_column(String(32), ForeignKey("accounts.id", ondelete="CASCADE"))
    title: Mapped[str] = mapped_column(String(100))
    topology: Mapped[str] = mapped_column(String(64))
    keras: Mapped[int]
    cells: Mapped[str] = mapped_column(Text)
    """The cells in order, as JSON: ``pages.SharedCells``."""
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
