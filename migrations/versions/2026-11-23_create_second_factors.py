"""Create the tables of authenticator apps and recovery codes, and mark sign-ins that wait for a code."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "create_second_factors"
down_revision = "create_exercises"


def upgrade() -> None:
    op.add_column("auth_sessions", sa.Column("pending", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_table(
        "authenticators",
        sa.Column("account_id", sa.String(32), _account(), primary_key=True),
        sa.Column("secret", sa.String(64), nullable=False),
        sa.Column("last_step", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "recovery_codes",
        sa.Column("code_hash", sa.String(64), primary_key=True),
        sa.Column("account_id", sa.String(32), _account(), nullable=False),
    )
    op.create_index("ix_recovery_codes_account_id", "recovery_codes", ["account_id"])


def downgrade() -> None:
    """Sign-ins that wait for a code end: an older version would take them for complete."""
    op.execute("DELETE FROM auth_sessions WHERE pending")
    op.drop_column("auth_sessions", "pending")
    op.drop_table("recovery_codes")
    op.drop_table("authenticators")


def _account() -> sa.ForeignKey:
    return sa.ForeignKey("accounts.id", ondelete="CASCADE")
