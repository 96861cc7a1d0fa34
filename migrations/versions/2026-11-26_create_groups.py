"""Create the tables of groups, and the indexes of runs that their pages read."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "create_groups"
down_revision = "create_shared_playgrounds"

_JUDGED = sa.text("judgement")
_UNSUCCESSFUL = sa.text("NOT judgement AND outcome NOT IN ('ok', 'interrupted', 'lost')")


def _group() -> sa.ForeignKey:
    return sa.ForeignKey("groups.id", ondelete="CASCADE")


def upgrade() -> None:
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "groups",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("course", sa.String(100), nullable=False),
        sa.Column("time_zone", sa.String(64), nullable=False),
        sa.Column("starts_at", moment),
        sa.Column("ends_at", moment),
        sa.Column("created_at", moment, nullable=False),
    )
    op.create_table(
        "group_members",
        sa.Column("group_id", sa.String(32), _group(), primary_key=True),
        sa.Column("account_id", sa.String(32), sa.ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("joined_at", moment, nullable=False),
        sa.Column("code_shared_at", moment),
        sa.Column("accepts_reminders", sa.Boolean(), nullable=False),
        sa.Column("reminded_at", moment),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("note_changed_at", moment),
        sa.CheckConstraint("role IN ('learner', 'assistant', 'instructor')", name="role_known"),
    )
    op.create_index("ix_group_members_account_id", "group_members", ["account_id"])
    op.create_table(
        "group_invitations",
        sa.Column("token_hash", sa.String(64), primary_key=True),
        sa.Column("group_id", sa.String(32), _group(), nullable=False),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("expires_at", moment, nullable=False),
    )
    op.create_index("ix_group_invitations_group_id", "group_invitations", ["group_id"])
    op.create_table(
        "group_deadlines",
        sa.Column("group_id", sa.String(32), _group(), primary_key=True),
        sa.Column("lesson", sa.String(200), primary_key=True),
        sa.Column("exercise", sa.String(100), primary_key=True),
        sa.Column("due_at", moment, nullable=False),
    )
    op.create_index(
        "ix_runs_judged",
        "runs",
        ["learner_id", "lesson", "cell", "created_at", "id"],
        sqlite_where=_JUDGED,
        postgresql_where=_JUDGED,
    )
    op.create_index(
        "ix_runs_unsuccessful",
        "runs",
        ["learner_id", "lesson", "cell", "outcome", "created_at"],
        sqlite_where=_UNSUCCESSFUL,
        postgresql_where=_UNSUCCESSFUL,
    )


def downgrade() -> None:
    """Groups, their members, and the notes about them are lost. What learners did stays."""
    op.drop_index("ix_runs_unsuccessful", "runs")
    op.drop_index("ix_runs_judged", "runs")
    for table in ("group_deadlines", "group_invitations", "group_members", "groups"):
        op.drop_table(table)
