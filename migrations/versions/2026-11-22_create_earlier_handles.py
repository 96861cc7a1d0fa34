"""Create earlier handles: nobody else gets what somebody was called by."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "create_earlier_handles"
down_revision = "add_outbox_account"


def upgrade() -> None:
    op.create_table(
        "earlier_handles",
        sa.Column("handle_hash", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=32), nullable=True),
        sa.ForeignKeyConstraint(
            ["account_id"], ["accounts.id"], name=op.f("fk_earlier_handles_account_id_accounts"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("handle_hash", name=op.f("pk_earlier_handles")),
    )
    op.create_index("ix_earlier_handles_account_id", "earlier_handles", ["account_id"])


def downgrade() -> None:
    op.drop_table("earlier_handles")
