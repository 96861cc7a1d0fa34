"""Create runs and their events."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "create_runs"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("visitor_id", sa.String(64), nullable=False),
        sa.Column("session_id", sa.String(64), nullable=False),
        sa.Column("lesson", sa.String(200), nullable=False),
        sa.Column("cell", sa.String(100), nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("topology", sa.String(64), nullable=False),
        sa.Column("keras", sa.Integer(), nullable=False),
        sa.Column("language", sa.String(8), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("handed_in_at", sa.DateTime(timezone=True)),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("outcome", sa.String(16)),
        sa.Column("started_at", sa.DateTime(timezone=True)),
        sa.Column("finished_at", sa.DateTime(timezone=True)),
        sa.Column("first_output_ms", sa.Integer()),
        sa.Column("duration_ms", sa.Integer()),
        sa.Column("peak_bytes", sa.BigInteger()),
        sa.Column("last_seq", sa.Integer(), nullable=False),
        sa.Column("stored_bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
        sa.CheckConstraint("state IN ('queued', 'running', 'finished')", name=op.f("ck_runs_state_known")),
        sa.CheckConstraint("(state = 'finished') = (outcome IS NOT NULL)", name=op.f("ck_runs_finished_has_outcome")),
    )
    op.create_index("ix_runs_visitor_lesson", "runs", ["visitor_id", "lesson", "created_at"])
    op.create_index("ix_runs_state", "runs", ["state"])
    op.create_index("ix_runs_session_id", "runs", ["session_id"])
    op.create_table(
        "run_events",
        sa.Column("run_id", sa.String(64), nullable=False),
        sa.Column("seq", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "seq", name=op.f("pk_run_events")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_run_events_run_id_runs"), ondelete="CASCADE"),
    )


def downgrade() -> None:
    op.drop_table("run_events")
    op.drop_index("ix_runs_session_id", "runs")
    op.drop_index("ix_runs_state", "runs")
    op.drop_index("ix_runs_visitor_lesson", "runs")
    op.drop_table("runs")
