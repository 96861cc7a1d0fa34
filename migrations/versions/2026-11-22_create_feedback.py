"""Create feedback: problems that were reported, and whether lessons were helpful."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "create_feedback"
down_revision = "create_handshakes"

_OPEN, _SAID = sa.text("handled_at IS NULL"), sa.text("sentence <> ''")
_INDEXES = (
    ("ix_problems_open", "problems", ["id"], _OPEN),
    ("ix_problems_lesson", "problems", ["lesson", "id"], None),
    ("ix_problems_kind", "problems", ["kind", "id"], None),
    ("ix_problems_learner_id", "problems", ["learner_id"], None),
    ("ix_lesson_votes_lesson", "lesson_votes", ["lesson", "helpful"], None),
    ("ix_lesson_votes_said", "lesson_votes", ["id"], _SAID),
    ("ix_lesson_votes_said_of", "lesson_votes", ["lesson", "id"], _SAID),
)


def upgrade() -> None:
    op.create_table(
        "problems",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("learner_id", sa.String(length=64), nullable=True),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("page", sa.String(length=300), nullable=False),
        sa.Column("lesson", sa.String(length=200), nullable=False),
        sa.Column("cell", sa.String(length=100), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("language", sa.String(length=8), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("handled_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("handled_by", sa.String(length=32), nullable=True),
        sa.Column("note", sa.String(length=500), nullable=False),
        sa.CheckConstraint(
            "kind IN ('text', 'code', 'translation', 'page', 'other')", name=op.f("ck_problems_kind_known")
        ),
        sa.ForeignKeyConstraint(
            ["handled_by"], ["accounts.id"], name=op.f("fk_problems_handled_by_accounts"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_problems")),
        sa.UniqueConstraint("key", name="uq_problems_key"),
    )
    op.create_table(
        "lesson_votes",
        sa.Column("learner_id", sa.String(length=64), nullable=False),
        sa.Column("lesson", sa.String(length=200), nullable=False),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("helpful", sa.Boolean(), nullable=False),
        sa.Column("sentence", sa.String(length=500), nullable=False),
        sa.Column("language", sa.String(length=8), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("learner_id", "lesson", name=op.f("pk_lesson_votes")),
        sa.UniqueConstraint("id", name="uq_lesson_votes_id"),
    )
    for name, table, columns, some in _INDEXES:
        op.create_index(name, table, columns, unique=False, sqlite_where=some, postgresql_where=some)


def downgrade() -> None:
    for name, table, _columns, _some in reversed(_INDEXES):
        op.drop_index(name, table_name=table)
    op.drop_table("lesson_votes")
    op.drop_table("problems")
