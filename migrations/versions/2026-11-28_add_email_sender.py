"""Add who wrote an email, so that it is not sent once their account is deleted."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "add_email_sender"
down_revision = "add_next_path"

_FOREIGN_KEY = "fk_outbox_sender_id_accounts"


def upgrade() -> None:
    """SQLite cannot add a constraint: the table is copied into a new one."""
    with op.batch_alter_table("outbox") as changed:
        changed.add_column(sa.Column("sender_id", sa.String(32), nullable=True))
        changed.create_foreign_key(_FOREIGN_KEY, "accounts", ["sender_id"], ["id"], ondelete="CASCADE")
        changed.create_index("ix_outbox_sender_id", ["sender_id"])


def downgrade() -> None:
    with op.batch_alter_table("outbox") as changed:
        changed.drop_index("ix_outbox_sender_id")
        changed.drop_constraint(_FOREIGN_KEY, type_="foreignkey")
        changed.drop_column("sender_id")
