"""Add when a run's output was deleted, and count what a run takes in the database as a whole."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "add_run_pruning"
down_revision = "add_comment_renderer_index"

_UNPRUNED = sa.text("pruned_at IS NULL")
_ROW_BYTES, _EVENT_ROW_BYTES = 1_000, 150
_RUNS = sa.table(
    "runs",
    sa.column("code", sa.Text()),
    sa.column("last_seq", sa.Integer()),
    sa.column("stored_bytes", sa.BigInteger()),
    sa.column("pruned_at", sa.DateTime()),
)


def upgrade() -> None:
    op.add_column("runs", sa.Column("pruned_at", sa.DateTime(timezone=True), nullable=True))
    op.execute(sa.update(_RUNS).values(stored_bytes=_RUNS.c.stored_bytes + _besides()))
    op.create_index("ix_runs_visitor_stored", "runs", ["visitor_id", "stored_bytes"])
    op.create_index("ix_runs_unpruned", "runs", ["finished_at"], sqlite_where=_UNPRUNED, postgresql_where=_UNPRUNED)


def downgrade() -> None:
    op.drop_index("ix_runs_unpruned", "runs")
    op.drop_index("ix_runs_visitor_stored", "runs")
    # A pruned run has fewer events than numbers; the JSON of those that are left is short.
    json = sa.case((_RUNS.c.pruned_at.is_(None), _RUNS.c.stored_bytes - _besides()), else_=0)
    op.execute(sa.update(_RUNS).values(stored_bytes=json))
    op.drop_column("runs", "pruned_at")  # in place: a table made again would take the events of its runs with it


def _besides() -> sa.ColumnElement[int]:
    """What a run takes besides the JSON of its events, which is all that was counted before."""
    sqlite = op.get_bind().dialect.name == "sqlite"
    code = sa.func.length(sa.cast(_RUNS.c.code, sa.LargeBinary())) if sqlite else sa.func.octet_length(_RUNS.c.code)
    return code + _ROW_BYTES + _EVENT_ROW_BYTES * _RUNS.c.last_seq
