"""Create the ledger of XP, and how far learners are in lessons."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "create_progress"
down_revision = "create_accounts"


def upgrade() -> None:
    op.create_table(
        "ledger",
        sa.Column("learner_id", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=24), nullable=False),
        sa.Column("subject", sa.String(length=320), nullable=False),
        sa.Column("xp", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("learner_id", "kind", "subject", name=op.f("pk_ledger")),
    )
    op.create_index("ix_ledger_learner_id_at", "ledger", ["learner_id", "at"], unique=False)
    op.create_table(
        "lesson_progress",
        sa.Column("learner_id", sa.String(length=64), nullable=False),
        sa.Column("lesson", sa.String(length=200), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("end_reached_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("completed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revisited_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("place", sa.String(length=100), nullable=False),
        sa.PrimaryKeyConstraint("learner_id", "lesson", name=op.f("pk_lesson_progress")),
    )


def downgrade() -> None:
    op.drop_table("lesson_progress")
    op.drop_index("ix_ledger_learner_id_at", table_name="ledger")
    op.drop_table("ledger")
