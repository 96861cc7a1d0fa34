"""Add an index by which comments are found that an earlier renderer made."""

from __future__ import annotations

from alembic import op

revision = "add_comment_renderer_index"
down_revision = "create_earlier_handles"


def upgrade() -> None:
    op.create_index("ix_comments_renderer", "comments", ["renderer"])


def downgrade() -> None:
    op.drop_index("ix_comments_renderer", table_name="comments")
