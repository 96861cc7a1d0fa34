"""Create the outbox of mails."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "create_outbox"
down_revision = "create_learner_zones"


def upgrade() -> None:
    op.create_table(
        "outbox",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("to", sa.String(length=320), nullable=False),
        sa.Column("subject", sa.String(length=300), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("html", sa.Text(), nullable=False),
        sa.Column("unsubscribe_url", sa.String(length=500), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("why", sa.String(length=300), nullable=False),
        sa.CheckConstraint("state IN ('waiting', 'sending', 'failed', 'doubtful')", name=op.f("ck_outbox_state_known")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox")),
    )
    op.create_index("ix_outbox_state_due_at", "outbox", ["state", "due_at"], unique=False)


def downgrade() -> None:
    op.drop_table("outbox")
