"""Create the audit log, and the indexes by which admins find accounts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "create_audit_log"
down_revision = "create_code_drafts"

_LISTS = {"created_at": ("created_at", "id"), "role": ("role", "created_at", "id"), "disabled_at": ("disabled_at",)}
_PREFIXES = ("email_key", "handle", "name")


def upgrade() -> None:
    op.create_table(
        "audit_entries",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("action", sa.String(40), nullable=False),
        sa.Column("actor_id", sa.String(32)),
        sa.Column("operator", sa.String(64), nullable=False),
        sa.Column("account_id", sa.String(32)),
        sa.Column("detail", sa.String(300), nullable=False),
    )
    op.create_index("ix_audit_entries_created_at", "audit_entries", ["created_at"])
    for column in ("action", "actor_id", "account_id"):
        op.create_index(f"ix_audit_entries_{column}", "audit_entries", [column, "id"])
    for name, columns in _LISTS.items():
        op.create_index(f"ix_accounts_{name}", "accounts", list(columns))
    for column in _PREFIXES:
        op.create_index(f"ix_accounts_{column}", "accounts", [column], postgresql_ops={column: "text_pattern_ops"})


def downgrade() -> None:
    for name in (*_LISTS, *_PREFIXES):
        op.drop_index(f"ix_accounts_{name}", "accounts")
    op.drop_table("audit_entries")
