"""Create the table of site switches, such as maintenance mode."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "create_site_switches"
down_revision = "create_audit_log"


def upgrade() -> None:
    op.create_table(
        "site_switches",
        sa.Column("name", sa.String(20), primary_key=True),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
    )


def downgrade() -> None:
    op.drop_table("site_switches")
