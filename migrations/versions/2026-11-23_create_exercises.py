"""Create the tables of exercises, and tell judgements from other runs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "create_exercises"
down_revision = "create_schema"

_VERDICTS = "'passed', 'failed', 'fault', 'lost'"


def upgrade() -> None:
    op.add_column("runs", sa.Column("judgement", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_table(
        "submissions",
        sa.Column("run_id", sa.String(64), sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("idempotency_key", sa.String(64), nullable=False, unique=True),
        sa.Column("verdict", sa.String(16)),
        sa.Column("results", sa.Text(), nullable=False),
        sa.Column("lesson_digest", sa.String(64), nullable=False),
        sa.CheckConstraint(f"verdict IN ({_VERDICTS})", name="verdict_known"),
    )
    op.create_table(
        "quiz_answers",
        *_subject("quiz"),
        sa.Column("first_choices", sa.String(200), nullable=False),
        sa.Column("first_right", sa.Boolean(), nullable=False),
        sa.Column("choices", sa.String(200), nullable=False),
        sa.Column("answered_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
    )
    op.create_table(
        "prediction_answers",
        *_subject("prediction"),
        sa.Column("guess", sa.String(200)),
        sa.Column("informed", sa.Boolean(), nullable=False),
        sa.Column("answered_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("result", sa.String(200)),
        sa.Column("right", sa.Boolean()),
    )
    op.create_index(
        "ix_prediction_answers_guesses", "prediction_answers", ["lesson", "prediction", "informed", "guess"]
    )


def downgrade() -> None:
    """Judgements go too: an older version would take them for runs of cells."""
    for table in ("prediction_answers", "quiz_answers", "submissions"):
        op.drop_table(table)
    op.execute("DELETE FROM run_events WHERE run_id IN (SELECT id FROM runs WHERE judgement)")
    op.execute("DELETE FROM runs WHERE judgement")
    op.drop_column("runs", "judgement")


def _subject(kind: str) -> tuple[sa.Column[str], ...]:
    """Whose answer to what."""
    return (
        sa.Column("learner_id", sa.String(64), primary_key=True),
        sa.Column("lesson", sa.String(200), primary_key=True),
        sa.Column(kind, sa.String(100), primary_key=True),
    )
