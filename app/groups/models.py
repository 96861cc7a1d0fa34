"""The tables of groups: the group, its members, the links that let people join, and its deadlines."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlalchemy import CheckConstraint, ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Base, UtcDateTime


class GroupRole(StrEnum):
    """What a member may do in a group. Each role but the first sees what the learners of the group did."""

    learner = "learner"
    assistant = "assistant"
    """Sees the learners, keeps notes, and sends reminders."""
    instructor = "instructor"
    """Also changes the group: its dates, deadlines, links, and members."""


_ROLES = ", ".join(f"'{role}'" for role in GroupRole)


class Group(Base):
    """People who take a course together. Deleting it deletes its members' rows, links, and deadlines."""

    __tablename__ = "groups"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    name: Mapped[str] = mapped_column(String(100))
    course: Mapped[str] = mapped_column(String(100))
    """The slug of the course that the group takes."""
    time_zone: Mapped[str] = mapped_column(String(64))
    """A name in the tz database: the days of the group begin and end there."""
    starts_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """What learners did before is not shown to the staff of the group. None: everything is."""
    ends_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """The first moment after the group: from then on nobody joins, and nothing new is shown."""
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class GroupMember(Base):
    """An account in a group. Leaving the group or deleting the account deletes the row, with the note in it."""

    __tablename__ = "group_members"
    __table_args__ = (
        CheckConstraint(f"role IN ({_ROLES})", name="role_known"),
        Index("ix_group_members_account_id", "account_id"),
    )

    group_id: Mapped[str] = mapped_column(ForeignKey("groups.id", ondelete="CASCADE"), primary_key=True)
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True)
    role: Mapped[str] = mapped_column(String(16))
    joined_at: Mapped[datetime] = mapped_column(UtcDateTime)
    code_shared_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """When the learner agreed to show code: the staff sees code that ran since then. None: no code is shown."""
    accepts_reminders: Mapped[bool] = mapped_column(default=True)
    reminded_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """When the staff of the group last sent a reminder by email."""
    note: Mapped[str] = mapped_column(Text, default="")
    """What the staff wrote about the learner. No page shows it to the learner, but their data export has it."""
    note_changed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class GroupInvitation(Base):
    """A link that lets anyone who has it join a group as a learner. Revoking it deletes the row."""

    __tablename__ = "group_invitations"
    __table_args__ = (Index("ix_group_invitations_group_id", "group_id"),)

    token_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    group_id: Mapped[str] = mapped_column(ForeignKey("groups.id", ondelete="CASCADE"))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime)


class GroupDeadline(Base):
    """When a lesson, or an exercise of it, is to be done."""

    __tablename__ = "group_deadlines"

    group_id: Mapped[str] = mapped_column(ForeignKey("groups.id", ondelete="CASCADE"), primary_key=True)
    lesson: Mapped[str] = mapped_column(String(200), primary_key=True)
    """``course/slug``."""
    exercise: Mapped[str] = mapped_column(String(100), primary_key=True)
    """The name of its cell; empty for the lesson as a whole."""
    due_at: Mapped[datetime] = mapped_column(UtcDateTime)
    """The first moment that is too late."""
