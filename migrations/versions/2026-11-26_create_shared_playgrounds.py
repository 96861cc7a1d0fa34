"""Create the table of shared copies of playgrounds."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "create_shared_playgrounds"
down_revision = "create_scratch_cells"


def upgrade() -> None:
    op.create_table(
        "shared_playgrounds",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("account_id", sa.String(32), sa.ForeignKey("accounts.id", ondelete="CASCADE"), nullable=False),
        sa.Column("title", sa.String(100), nullable=False),
        sa.Column("topology", sa.String(64), nullable=False),
        sa.Column("keras", sa.Integer(), nullable=False),
        sa.Column("cells", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_index("ix_shared_playgrounds_account_id", "shared_playgrounds", ["account_id", "created_at"])


def downgrade() -> None:
    """Links to shared copies stop working."""
    op.drop_table("shared_playgrounds")
