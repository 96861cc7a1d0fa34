"""Create the schema of the first version. Constraints get their names from the convention of ``app.db.Base``."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision = "create_schema"
down_revision = None

_TABLES = (
    *("runs", "run_events"),
    *("accounts", "auth_sessions", "email_links", "invitations", "passkeys", "identities"),
    *("retired_handles", "merged_visitors", "rate_limit_counters", "auth_challenges"),
    *("ledger_entries", "lesson_progress", "learner_time_zones"),
    *("comments", "comment_versions", "comment_reactions", "comment_reports", "comment_counters"),
    *("problem_reports", "lesson_votes", "notifications", "email_opt_outs", "outbox"),
)


def upgrade() -> None:
    _create_runs()
    _create_accounts()
    _create_sign_in()
    _create_progress()
    _create_comments()
    _create_feedback()
    _create_notifications()
    _create_outbox()


def downgrade() -> None:
    for table in reversed(_TABLES):
        op.drop_table(table)


def _moment(name: str, *, nullable: bool = False) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def _account(name: str = "account_id", *, ondelete: str = "CASCADE", primary_key: bool = False) -> sa.Column[str]:
    """A column that refers to an account. Deleting the account deletes the row, or sets the column to NULL."""
    account = sa.ForeignKey("accounts.id", ondelete=ondelete)
    return sa.Column(name, sa.String(32), account, primary_key=primary_key, nullable=ondelete == "SET NULL")


def _comment(name: str = "comment_id", *, nullable: bool = False, primary_key: bool = False) -> sa.Column[str]:
    """A column that refers to a comment. Deleting the comment deletes the row."""
    comment = sa.ForeignKey("comments.id", ondelete="CASCADE")
    return sa.Column(name, sa.String(32), comment, primary_key=primary_key, nullable=nullable)


def _index(name: str, table: str, columns: Sequence[str], where: str | None = None) -> None:
    """An index; with ``where``, of some rows only."""
    some = None if where is None else sa.text(where)
    op.create_index(name, table, columns, sqlite_where=some, postgresql_where=some)


def _create_runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("learner_id", sa.String(64), nullable=False),
        sa.Column("session_id", sa.String(64), nullable=False),
        sa.Column("lesson", sa.String(200), nullable=False),
        sa.Column("cell", sa.String(100), nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("topology", sa.String(64), nullable=False),
        sa.Column("keras", sa.Integer(), nullable=False),
        sa.Column("language", sa.String(8), nullable=False),
        _moment("created_at"),
        _moment("submitted_at", nullable=True),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("outcome", sa.String(16)),
        _moment("started_at", nullable=True),
        _moment("finished_at", nullable=True),
        sa.Column("first_output_ms", sa.Integer()),
        sa.Column("duration_ms", sa.Integer()),
        sa.Column("peak_bytes", sa.BigInteger()),
        sa.Column("last_seq", sa.Integer(), nullable=False),
        sa.Column("stored_bytes", sa.BigInteger(), nullable=False),
        _moment("pruned_at", nullable=True),
        sa.CheckConstraint("state IN ('queued', 'running', 'finished')", name="state_known"),
        sa.CheckConstraint("(state = 'finished') = (outcome IS NOT NULL)", name="finished_has_outcome"),
    )
    _index("ix_runs_learner_lesson", "runs", ["learner_id", "lesson", "created_at"])
    _index("ix_runs_state", "runs", ["state"])
    _index("ix_runs_session_id", "runs", ["session_id"])
    _index("ix_runs_learner_stored", "runs", ["learner_id", "stored_bytes"])
    _index("ix_runs_unpruned", "runs", ["finished_at"], "pruned_at IS NULL")
    op.create_table(
        "run_events",
        sa.Column("run_id", sa.String(64), sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("seq", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
    )


def _create_accounts() -> None:
    op.create_table(
        "accounts",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("learner_id", sa.String(64), nullable=False, unique=True),
        sa.Column("email", sa.String(320), nullable=False),
        sa.Column("email_key", sa.String(320), nullable=False, unique=True),
        _moment("email_confirmed_at", nullable=True),
        sa.Column("password_hash", sa.String(255)),
        sa.Column("name", sa.String(80), nullable=False),
        sa.Column("handle", sa.String(40), nullable=False, unique=True),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("language", sa.String(8), nullable=False),
        sa.Column("time_zone", sa.String(64), nullable=False),
        sa.Column("public_profile", sa.Boolean(), nullable=False),
        sa.Column("email_frequency", sa.String(16), nullable=False),
        _moment("created_at"),
        _moment("disabled_at", nullable=True),
        sa.CheckConstraint("role IN ('learner', 'instructor', 'admin')", name="role_known"),
        sa.CheckConstraint("email_frequency IN ('immediately', 'daily', 'never')", name="email_frequency_known"),
    )
    op.create_table(
        "retired_handles",
        sa.Column("handle_hash", sa.String(64), primary_key=True),
        _account(ondelete="SET NULL"),
    )
    _index("ix_retired_handles_account_id", "retired_handles", ["account_id"])
    op.create_table(
        "merged_visitors",
        sa.Column("visitor_id", sa.String(64), primary_key=True),
        _account(),
        _moment("merged_at"),
    )
    _index("ix_merged_visitors_account_id", "merged_visitors", ["account_id"])


def _create_sign_in() -> None:
    op.create_table(
        "auth_sessions",
        sa.Column("token_hash", sa.String(64), primary_key=True),
        sa.Column("public_id", sa.String(32), nullable=False, unique=True),
        _account(),
        sa.Column("method", sa.String(16), nullable=False),
        _moment("created_at"),
        _moment("last_seen_at"),
        _moment("expires_at"),
        sa.Column("user_agent", sa.String(300), nullable=False),
        sa.Column("ip_address", sa.String(64), nullable=False),
    )
    _index("ix_auth_sessions_account_id", "auth_sessions", ["account_id"])
    op.create_table(
        "email_links",
        sa.Column("token_hash", sa.String(64), primary_key=True),
        sa.Column("purpose", sa.String(16), nullable=False),
        _account(),
        sa.Column("email", sa.String(320), nullable=False),
        _moment("created_at"),
        _moment("expires_at"),
        _moment("used_at", nullable=True),
    )
    _index("ix_email_links_account_id", "email_links", ["account_id"])
    op.create_table(
        "invitations",
        sa.Column("token_hash", sa.String(64), primary_key=True),
        sa.Column("email", sa.String(320)),
        sa.Column("role", sa.String(16), nullable=False),
        _moment("created_at"),
        _moment("expires_at"),
        _moment("used_at", nullable=True),
    )
    op.create_table(
        "passkeys",
        sa.Column("id", sa.String(400), primary_key=True),
        _account(),
        sa.Column("name", sa.String(80), nullable=False),
        sa.Column("public_key", sa.LargeBinary(), nullable=False),
        sa.Column("sign_count", sa.Integer(), nullable=False),
        sa.Column("transports", sa.String(100), nullable=False),
        _moment("created_at"),
        _moment("last_used_at", nullable=True),
    )
    _index("ix_passkeys_account_id", "passkeys", ["account_id"])
    op.create_table(
        "identities",
        sa.Column("issuer", sa.String(200), primary_key=True),
        sa.Column("subject", sa.String(255), primary_key=True),
        _account(),
        sa.Column("email", sa.String(320), nullable=False),
        _moment("created_at"),
        sa.UniqueConstraint("account_id", "issuer", name="uq_identities_account_id_issuer"),
    )
    _index("ix_identities_account_id", "identities", ["account_id"])
    op.create_table(
        "auth_challenges",
        sa.Column("key_hash", sa.String(64), primary_key=True),
        sa.Column("browser_hash", sa.String(64), nullable=False),
        sa.Column("purpose", sa.String(64), nullable=False),
        sa.Column("account_id", sa.String(32), sa.ForeignKey("accounts.id", ondelete="CASCADE")),
        sa.Column("data", sa.Text(), nullable=False),
        _moment("expires_at"),
    )
    _index("ix_auth_challenges_expires_at", "auth_challenges", ["expires_at"])
    op.create_table(
        "rate_limit_counters",
        sa.Column("key", sa.String(120), primary_key=True),
        sa.Column("count", sa.Integer(), nullable=False),
        _moment("last_at"),
    )


def _create_progress() -> None:
    op.create_table(
        "ledger_entries",
        sa.Column("learner_id", sa.String(64), primary_key=True),
        sa.Column("kind", sa.String(24), primary_key=True),
        sa.Column("subject", sa.String(320), primary_key=True),
        sa.Column("xp", sa.Integer(), nullable=False),
        _moment("occurred_at"),
    )
    _index("ix_ledger_entries_learner_id_occurred_at", "ledger_entries", ["learner_id", "occurred_at"])
    op.create_table(
        "lesson_progress",
        sa.Column("learner_id", sa.String(64), primary_key=True),
        sa.Column("lesson", sa.String(200), primary_key=True),
        _moment("started_at"),
        _moment("end_reached_at", nullable=True),
        _moment("completed_at", nullable=True),
        _moment("revisited_at", nullable=True),
        _moment("last_seen_at"),
        sa.Column("anchor", sa.String(100), nullable=False),
    )
    op.create_table(
        "learner_time_zones",
        sa.Column("learner_id", sa.String(64), primary_key=True),
        sa.Column("time_zone", sa.String(64), nullable=False),
        _moment("updated_at"),
    )


def _create_comments() -> None:
    op.create_table(
        "comments",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("lesson", sa.String(200), nullable=False),
        sa.Column("cell", sa.String(100), nullable=False),
        _comment("thread_id", nullable=True),
        _account("author_id", ondelete="SET NULL"),
        sa.Column("idempotency_key", sa.String(64), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("html", sa.Text(), nullable=False),
        sa.Column("renderer_version", sa.Integer(), nullable=False),
        sa.Column("language", sa.String(8), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        _moment("created_at"),
        _moment("edited_at", nullable=True),
        sa.Column("edit_count", sa.Integer(), nullable=False),
        sa.Column("pinned", sa.Boolean(), nullable=False),
        sa.Column("answer_id", sa.String(32)),
        sa.Column("reply_count", sa.Integer(), nullable=False),
        sa.Column("helpful_count", sa.Integer(), nullable=False),
        sa.Column("same_count", sa.Integer(), nullable=False),
        sa.Column("thanks_count", sa.Integer(), nullable=False),
        sa.Column("report_count", sa.Integer(), nullable=False),
        sa.Column("reason", sa.String(500), nullable=False),
        _account("moderated_by", ondelete="SET NULL"),
        _moment("moderated_at", nullable=True),
        sa.CheckConstraint("state IN ('shown', 'held', 'hidden', 'deleted')", name="state_known"),
        sa.UniqueConstraint("author_id", "idempotency_key", name="uq_comments_author_id_idempotency_key"),
    )
    _index("ix_comments_threads", "comments", ["lesson", "cell", "id"], "thread_id IS NULL")
    _index("ix_comments_pinned", "comments", ["lesson", "cell", "id"], "pinned")
    _index("ix_comments_thread_id", "comments", ["thread_id", "id"], "thread_id IS NOT NULL")
    _index("ix_comments_author_id", "comments", ["author_id", "id"])
    _index("ix_comments_held", "comments", ["id"], "state = 'held'")
    _index("ix_comments_reported", "comments", ["id"], "report_count > 0")
    _index("ix_comments_renderer_version", "comments", ["renderer_version"])
    op.create_table(
        "comment_versions",
        _comment(primary_key=True),
        sa.Column("number", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("source", sa.Text(), nullable=False),
        _moment("written_at"),
    )
    op.create_table(
        "comment_reactions",
        _comment(primary_key=True),
        _account(primary_key=True),
        sa.Column("kind", sa.String(16), primary_key=True),
        _moment("created_at"),
    )
    _index("ix_comment_reactions_account_id", "comment_reactions", ["account_id"])
    op.create_table(
        "comment_reports",
        _comment(primary_key=True),
        _account(primary_key=True),
        sa.Column("reason", sa.String(500), nullable=False),
        _moment("reported_at"),
        sa.Column("resolved", sa.Boolean(), nullable=False),
    )
    _index("ix_comment_reports_account_id", "comment_reports", ["account_id"])
    op.create_table(
        "comment_counters",
        sa.Column("lesson", sa.String(200), primary_key=True),
        sa.Column("cell", sa.String(100), primary_key=True),
        sa.Column("comment_count", sa.Integer(), nullable=False),
    )


def _create_feedback() -> None:
    op.create_table(
        "problem_reports",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("idempotency_key", sa.String(64), nullable=False),
        sa.Column("learner_id", sa.String(64)),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("page", sa.String(300), nullable=False),
        sa.Column("lesson", sa.String(200), nullable=False),
        sa.Column("cell", sa.String(100), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("language", sa.String(8), nullable=False),
        _moment("created_at"),
        _moment("resolved_at", nullable=True),
        _account("resolved_by", ondelete="SET NULL"),
        sa.Column("note", sa.String(500), nullable=False),
        sa.CheckConstraint("kind IN ('text', 'code', 'translation', 'page', 'other')", name="kind_known"),
        sa.UniqueConstraint("idempotency_key"),
    )
    _index("ix_problem_reports_open", "problem_reports", ["id"], "resolved_at IS NULL")
    _index("ix_problem_reports_lesson", "problem_reports", ["lesson", "id"])
    _index("ix_problem_reports_kind", "problem_reports", ["kind", "id"])
    _index("ix_problem_reports_learner_id", "problem_reports", ["learner_id"])
    op.create_table(
        "lesson_votes",
        sa.Column("learner_id", sa.String(64), primary_key=True),
        sa.Column("lesson", sa.String(200), primary_key=True),
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("helpful", sa.Boolean(), nullable=False),
        sa.Column("comment", sa.String(500), nullable=False),
        sa.Column("language", sa.String(8), nullable=False),
        _moment("updated_at"),
        sa.UniqueConstraint("id"),
    )
    _index("ix_lesson_votes_lesson", "lesson_votes", ["lesson", "helpful"])
    _index("ix_lesson_votes_comment", "lesson_votes", ["id"], "comment <> ''")
    _index("ix_lesson_votes_lesson_comment", "lesson_votes", ["lesson", "id"], "comment <> ''")


def _create_notifications() -> None:
    kinds = "kind IN ('reply', 'mention', 'answered', 'achievement')"
    op.create_table(
        "notifications",
        sa.Column("id", sa.String(32), primary_key=True),
        _account(),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("subject", sa.String(200), nullable=False),
        _account("actor_id", ondelete="SET NULL"),
        _moment("created_at"),
        _moment("read_at", nullable=True),
        _moment("emailed_at", nullable=True),
        sa.CheckConstraint(kinds, name="kind_known"),
        sa.UniqueConstraint("account_id", "kind", "subject", name="uq_notifications_account_id_kind_subject"),
    )
    _index("ix_notifications_account_id", "notifications", ["account_id", "id"])
    _index("ix_notifications_unread", "notifications", ["account_id"], "read_at IS NULL")
    _index("ix_notifications_waiting", "notifications", ["created_at"], "read_at IS NULL AND emailed_at IS NULL")
    _index("ix_notifications_created_at", "notifications", ["created_at"])
    _index("ix_notifications_subject", "notifications", ["subject"])
    _index("ix_notifications_actor_id", "notifications", ["actor_id"])
    op.create_table(
        "email_opt_outs",
        _account(primary_key=True),
        sa.Column("kind", sa.String(16), primary_key=True),
        sa.CheckConstraint(kinds, name="kind_known"),
    )


def _create_outbox() -> None:
    op.create_table(
        "outbox",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("account_id", sa.String(32), sa.ForeignKey("accounts.id", ondelete="CASCADE")),
        sa.Column("recipient", sa.String(320), nullable=False),
        sa.Column("subject", sa.String(300), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("html", sa.Text(), nullable=False),
        sa.Column("unsubscribe_url", sa.String(500), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        _moment("created_at"),
        _moment("due_at"),
        sa.Column("last_error", sa.String(300), nullable=False),
        sa.CheckConstraint("state IN ('waiting', 'sending', 'failed', 'unconfirmed')", name="state_known"),
    )
    _index("ix_outbox_state_due_at", "outbox", ["state", "due_at"])
    _index("ix_outbox_account_id", "outbox", ["account_id"])
