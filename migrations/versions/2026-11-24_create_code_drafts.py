"""Create the table of code drafts: edits of cells that an account's browsers share."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "create_code_drafts"
down_revision = "add_run_adoption"


def upgrade() -> None:
    op.create_table(
        "code_drafts",
        sa.Column("account_id", sa.String(32), sa.ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("lesson", sa.String(200), primary_key=True),
        sa.Column("cell", sa.String(100), primary_key=True),
        sa.Column("code", sa.Text(), nullable=True),
        sa.Column("original_digest", sa.String(16), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
    )


def downgrade() -> None:
    """Browsers keep their own copies of the drafts."""
    op.drop_table("code_drafts")
