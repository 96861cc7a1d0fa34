"""Add the time until which a process is believed to follow a run."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "add_run_adoption"
down_revision = "create_second_factors"


def upgrade() -> None:
    op.add_column("runs", sa.Column("followed_until", sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    op.drop_column("runs", "followed_until")
