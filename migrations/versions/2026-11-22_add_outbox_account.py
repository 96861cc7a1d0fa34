"""Add whom a mail of the outbox is about: it goes with them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "add_outbox_account"
down_revision = "create_notifications"

_KEY = "fk_outbox_account_id_accounts"


def upgrade() -> None:
    with op.batch_alter_table("outbox") as table:
        table.add_column(sa.Column("account_id", sa.String(length=32), nullable=True))
        table.create_foreign_key(op.f(_KEY), "accounts", ["account_id"], ["id"], ondelete="CASCADE")
        table.create_index("ix_outbox_account_id", ["account_id"])


def downgrade() -> None:
    with op.batch_alter_table("outbox") as table:
        table.drop_index("ix_outbox_account_id")
        table.drop_constraint(op.f(_KEY), type_="foreignkey")
        table.drop_column("account_id")
