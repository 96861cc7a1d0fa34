"""Create handshakes: sign-ins with a device or another site that have begun and wait for their answer."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "create_handshakes"
down_revision = "create_comments"


def upgrade() -> None:
    op.create_table(
        "handshakes",
        sa.Column("key_hash", sa.String(length=64), nullable=False),
        sa.Column("browser_hash", sa.String(length=64), nullable=False),
        sa.Column("purpose", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=32), nullable=True),
        sa.Column("facts", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id"], ["accounts.id"], name=op.f("fk_handshakes_account_id_accounts"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("key_hash", name=op.f("pk_handshakes")),
    )
    op.create_index("ix_handshakes_expires_at", "handshakes", ["expires_at"])


def downgrade() -> None:
    op.drop_index("ix_handshakes_expires_at", table_name="handshakes")
    op.drop_table("handshakes")
