"""Let notifications tell the staff of a group that code waits for their review."""

from __future__ import annotations

from alembic import op

revision = "notify_reviewers"
down_revision = "create_reviews"

_KINDS_BEFORE = ("reply", "mention", "answered", "achievement", "review")


def upgrade() -> None:
    _allow_kinds(*_KINDS_BEFORE, "review-request")


def downgrade() -> None:
    """The notifications that tell of waiting code are lost; the code goes on waiting."""
    op.execute("DELETE FROM notifications WHERE kind = 'review-request'")
    op.execute("DELETE FROM email_opt_outs WHERE kind = 'review-request'")
    _allow_kinds(*_KINDS_BEFORE)


def _allow_kinds(*kinds: str) -> None:
    """SQLite cannot change a constraint: the table is copied into a new one."""
    known = f"kind IN ({', '.join(repr(kind) for kind in kinds)})"
    for table in ("notifications", "email_opt_outs"):
        with op.batch_alter_table(table) as changed:
            changed.drop_constraint("kind_known", type_="check")
            changed.create_check_constraint("kind_known", known)
