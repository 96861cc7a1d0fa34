"""Add the page that a link sent by email leads to once it is used."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "add_next_path"
down_revision = "notify_reviewers"


def upgrade() -> None:
    op.add_column("email_links", sa.Column("next_path", sa.String(length=500), nullable=True))


def downgrade() -> None:
    op.drop_column("email_links", "next_path")
