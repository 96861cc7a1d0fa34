"""Create the table of scratch cells: cells that learners add to lessons and to the playground."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "create_scratch_cells"
down_revision = "create_site_switches"


def upgrade() -> None:
    op.create_table(
        "scratch_cells",
        sa.Column("learner_id", sa.String(64), primary_key=True),
        sa.Column("lesson", sa.String(200), primary_key=True),
        sa.Column("name", sa.String(32), primary_key=True),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("title", sa.String(100), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("anchor", sa.String(100), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("kind IN ('code', 'text')", name="kind_known"),
    )


def downgrade() -> None:
    """Learners lose the cells that they have added; the runs of these cells stay."""
    op.drop_table("scratch_cells")
