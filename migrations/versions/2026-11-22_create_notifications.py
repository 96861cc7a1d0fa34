"""Create notifications: what somebody is told, and of which kinds they want no mail."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "create_notifications"
down_revision = "create_feedback"

_KINDS = "kind IN ('reply', 'mention', 'answered', 'achievement')"
_UNREAD, _WAITING = sa.text("read_at IS NULL"), sa.text("read_at IS NULL AND mailed_at IS NULL")
_INDEXES = (
    ("ix_notifications_account_id", ["account_id", "id"], None),
    ("ix_notifications_unread", ["account_id"], _UNREAD),
    ("ix_notifications_waiting", ["created_at"], _WAITING),
    ("ix_notifications_created_at", ["created_at"], None),
    ("ix_notifications_subject", ["subject"], None),
    ("ix_notifications_actor_id", ["actor_id"], None),
)


def upgrade() -> None:
    op.create_table(
        "notifications",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("account_id", sa.String(length=32), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("subject", sa.String(length=200), nullable=False),
        sa.Column("actor_id", sa.String(length=32), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("read_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("mailed_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(_KINDS, name=op.f("ck_notifications_kind_known")),
        sa.ForeignKeyConstraint(
            ["account_id"], ["accounts.id"], name=op.f("fk_notifications_account_id_accounts"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["actor_id"], ["accounts.id"], name=op.f("fk_notifications_actor_id_accounts"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notifications")),
        sa.UniqueConstraint("account_id", "kind", "subject", name="uq_notifications_account_id_kind_subject"),
    )
    for name, columns, some in _INDEXES:
        op.create_index(name, "notifications", columns, unique=False, sqlite_where=some, postgresql_where=some)
    op.create_table(
        "unmailed_kinds",
        sa.Column("account_id", sa.String(length=32), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.CheckConstraint(_KINDS, name=op.f("ck_unmailed_kinds_kind_known")),
        sa.ForeignKeyConstraint(
            ["account_id"], ["accounts.id"], name=op.f("fk_unmailed_kinds_account_id_accounts"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("account_id", "kind", name=op.f("pk_unmailed_kinds")),
    )


def downgrade() -> None:
    op.drop_table("unmailed_kinds")
    for name, _columns, _some in reversed(_INDEXES):
        op.drop_index(name, table_name="notifications")
    op.drop_table("notifications")
