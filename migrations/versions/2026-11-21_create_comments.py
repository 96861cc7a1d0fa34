"""Create comments: what is said under lessons, what it said before, reactions, reports, and their counts by place."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "create_comments"
down_revision = "create_outbox"

_ROOT, _REPLY = sa.text("thread_id IS NULL"), sa.text("thread_id IS NOT NULL")
_HELD, _REPORTED, _PINNED = sa.text("state = 'held'"), sa.text("reports > 0"), sa.text("pinned")
_INDEXES = (
    ("ix_comments_place", ["lesson", "cell", "id"], _ROOT),
    ("ix_comments_pinned", ["lesson", "cell", "id"], _PINNED),
    ("ix_comments_thread_id", ["thread_id", "id"], _REPLY),
    ("ix_comments_author_id", ["author_id", "id"], None),
    ("ix_comments_held", ["id"], _HELD),
    ("ix_comments_reported", ["id"], _REPORTED),
)


def upgrade() -> None:
    op.create_table(
        "comments",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("lesson", sa.String(length=200), nullable=False),
        sa.Column("cell", sa.String(length=100), nullable=False),
        sa.Column("thread_id", sa.String(length=32), nullable=True),
        sa.Column("author_id", sa.String(length=32), nullable=True),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("html", sa.Text(), nullable=False),
        sa.Column("renderer", sa.Integer(), nullable=False),
        sa.Column("language", sa.String(length=8), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("edited_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("edits", sa.Integer(), nullable=False),
        sa.Column("pinned", sa.Boolean(), nullable=False),
        sa.Column("answer_id", sa.String(length=32), nullable=True),
        sa.Column("replies", sa.Integer(), nullable=False),
        sa.Column("helpful", sa.Integer(), nullable=False),
        sa.Column("same", sa.Integer(), nullable=False),
        sa.Column("thanks", sa.Integer(), nullable=False),
        sa.Column("reports", sa.Integer(), nullable=False),
        sa.Column("reason", sa.String(length=500), nullable=False),
        sa.Column("moderated_by", sa.String(length=32), nullable=True),
        sa.Column("moderated_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("state IN ('shown', 'held', 'hidden', 'deleted')", name=op.f("ck_comments_state_known")),
        sa.ForeignKeyConstraint(
            ["author_id"], ["accounts.id"], name=op.f("fk_comments_author_id_accounts"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["moderated_by"], ["accounts.id"], name=op.f("fk_comments_moderated_by_accounts"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["thread_id"], ["comments.id"], name=op.f("fk_comments_thread_id_comments"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_comments")),
        sa.UniqueConstraint("author_id", "key", name="uq_comments_author_id_key"),
    )
    for name, columns, some in _INDEXES:
        op.create_index(name, "comments", columns, unique=False, sqlite_where=some, postgresql_where=some)
    op.create_table(
        "comment_versions",
        sa.Column("comment_id", sa.String(length=32), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("written_at", sa.DateTime(timezone=True), nullable=False),
        _of_comment("comment_versions"),
        sa.PrimaryKeyConstraint("comment_id", "number", name=op.f("pk_comment_versions")),
    )
    op.create_table(
        "comment_reactions",
        sa.Column("comment_id", sa.String(length=32), nullable=False),
        sa.Column("account_id", sa.String(length=32), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        _of_comment("comment_reactions"),
        _of_account("comment_reactions"),
        sa.PrimaryKeyConstraint("comment_id", "account_id", "kind", name=op.f("pk_comment_reactions")),
    )
    op.create_index("ix_comment_reactions_account_id", "comment_reactions", ["account_id"], unique=False)
    op.create_table(
        "comment_reports",
        sa.Column("comment_id", sa.String(length=32), nullable=False),
        sa.Column("account_id", sa.String(length=32), nullable=False),
        sa.Column("reason", sa.String(length=500), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("settled", sa.Boolean(), nullable=False),
        _of_comment("comment_reports"),
        _of_account("comment_reports"),
        sa.PrimaryKeyConstraint("comment_id", "account_id", name=op.f("pk_comment_reports")),
    )
    op.create_index("ix_comment_reports_account_id", "comment_reports", ["account_id"], unique=False)
    op.create_table(
        "comment_places",
        sa.Column("lesson", sa.String(length=200), nullable=False),
        sa.Column("cell", sa.String(length=100), nullable=False),
        sa.Column("shown", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("lesson", "cell", name=op.f("pk_comment_places")),
    )


def downgrade() -> None:
    for table in ("comment_places", "comment_reports", "comment_reactions", "comment_versions"):
        op.drop_table(table)
    for name, _columns, _some in reversed(_INDEXES):
        op.drop_index(name, table_name="comments")
    op.drop_table("comments")


def _of_comment(table: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_{table}_comment_id_comments")
    return sa.ForeignKeyConstraint(["comment_id"], ["comments.id"], name=name, ondelete="CASCADE")


def _of_account(table: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_{table}_account_id_accounts")
    return sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=name, ondelete="CASCADE")
