"""Create the time zones of learners."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "create_learner_zones"
down_revision = "create_progress"


def upgrade() -> None:
    op.create_table(
        "learner_zones",
        sa.Column("learner_id", sa.String(length=64), nullable=False),
        sa.Column("time_zone", sa.String(length=64), nullable=False),
        sa.Column("said_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("learner_id", name=op.f("pk_learner_zones")),
    )


def downgrade() -> None:
    op.drop_table("learner_zones")
