"""Create the tables of reviews, and let notifications be about them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "create_reviews"
down_revision = "create_api_tokens"

_KINDS_BEFORE = ("reply", "mention", "answered", "achievement")


def _account(name: str, ondelete: str = "CASCADE", *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.String(32), sa.ForeignKey("accounts.id", ondelete=ondelete), nullable=nullable)


def upgrade() -> None:
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "reviews",
        sa.Column("id", sa.String(32), primary_key=True),
        _account("account_id"),
        sa.Column("group_id", sa.String(32), sa.ForeignKey("groups.id", ondelete="SET NULL")),
        sa.Column("lesson", sa.String(200), nullable=False),
        sa.Column("exercise", sa.String(100), nullable=False),
        sa.Column("run_id", sa.String(64), nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("output", sa.Text(), nullable=False),
        sa.Column("results", sa.Text(), nullable=False),
        sa.Column("state", sa.String(24), nullable=False),
        sa.Column("requested_at", moment, nullable=False),
        _account("reviewer_id", "SET NULL", nullable=True),
        sa.Column("decided_at", moment),
        sa.Column("remark", sa.Text(), nullable=False),
        sa.CheckConstraint("state IN ('waiting', 'withdrawn', 'changes-requested', 'accepted')", name="state_known"),
        sa.UniqueConstraint("run_id", name="uq_reviews_run_id"),
    )
    op.create_index("ix_reviews_account_id", "reviews", ["account_id", "lesson", "exercise"])
    op.create_index("ix_reviews_group_id", "reviews", ["group_id", "state", "requested_at"])
    op.create_index("ix_reviews_reviewer_id", "reviews", ["reviewer_id"])
    op.create_table(
        "review_comments",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("review_id", sa.String(32), sa.ForeignKey("reviews.id", ondelete="CASCADE"), nullable=False),
        _account("author_id", "SET NULL", nullable=True),
        sa.Column("line", sa.Integer(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("created_at", moment, nullable=False),
    )
    op.create_index("ix_review_comments_review_id", "review_comments", ["review_id", "line"])
    op.create_index("ix_review_comments_author_id", "review_comments", ["author_id"])
    _allow_kinds(*_KINDS_BEFORE, "review")


def downgrade() -> None:
    """Reviews, their comments, and the notifications about them are lost. What an accepted one has earned stays."""
    op.execute("DELETE FROM notifications WHERE kind = 'review'")
    op.execute("DELETE FROM email_opt_outs WHERE kind = 'review'")
    _allow_kinds(*_KINDS_BEFORE)
    op.drop_table("review_comments")
    op.drop_table("reviews")


def _allow_kinds(*kinds: str) -> None:
    """SQLite cannot change a constraint: the table is copied into a new one."""
    known = f"kind IN ({', '.join(repr(kind) for kind in kinds)})"
    for table in ("notifications", "email_opt_outs"):
        with op.batch_alter_table(table) as changed:
            changed.drop_constraint("kind_known", type_="check")
            changed.create_check_constraint("kind_known", known)
