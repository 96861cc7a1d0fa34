"""Upgrades a database from before the first version to the schema of the first version.

Before the first version, tables and columns had other names, and twelve migrations created them. The first version has
one migration. A database with all earlier ones, at ``LAST_REVISION``, keeps its rows: its tables are renamed, the first
version creates its own, and each row is copied. So the schema is the same as in a new database, even in the names of
constraints. All of this is one transaction, during which the database needs twice its space on disk.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, MetaData, Table, case, insert, select, text

LAST_REVISION = "add_run_pruning"
FIRST_REVISION = "create_schema"
UNSUPPORTED_REVISIONS = frozenset(
    {
        *("create_runs", "create_accounts", "create_progress", "create_learner_zones", "create_outbox"),
        *("create_comments", "create_handshakes", "create_feedback", "create_notifications", "add_outbox_account"),
        *("create_earlier_handles", "add_comment_renderer_index"),
    }
)
LAST_COMMIT = "03760b7"
"""The last commit with the twelve migrations; it upgrades a database to ``LAST_REVISION``."""

_TABLES: Mapping[str, str] = {
    "accounts": "accounts",
    "sign_ins": "auth_sessions",
    "mail_links": "email_links",
    "invitations": "invitations",
    "passkeys": "passkeys",
    "identities": "identities",
    "earlier_handles": "retired_handles",
    "merged_visitors": "merged_visitors",
    "attempts": "rate_limit_counters",
    "handshakes": "auth_challenges",
    "runs": "runs",
    "run_events": "run_events",
    "ledger": "ledger_entries",
    "lesson_progress": "lesson_progress",
    "learner_zones": "learner_time_zones",
    "comments": "comments",
    "comment_versions": "comment_versions",
    "comment_reactions": "comment_reactions",
    "comment_reports": "comment_reports",
    "comment_places": "comment_counters",
    "problems": "problem_reports",
    "lesson_votes": "lesson_votes",
    "outbox": "outbox",
    "notifications": "notifications",
    "unmailed_kinds": "email_opt_outs",
}
"""The old and new name of each table. A table comes after those that it refers to."""

_COLUMNS: Mapping[str, Mapping[str, str]] = {
    "accounts": {"mailing": "email_frequency"},
    "sign_ins": {"seen_at": "last_seen_at", "agent": "user_agent", "address": "ip_address"},
    "passkeys": {"used_at": "last_used_at"},
    "handshakes": {"facts": "data"},
    "runs": {"visitor_id": "learner_id", "handed_in_at": "submitted_at"},
    "ledger": {"at": "occurred_at"},
    "lesson_progress": {"seen_at": "last_seen_at", "place": "anchor"},
    "learner_zones": {"said_at": "updated_at"},
    "comments": {
        "key": "idempotency_key",
        "renderer": "renderer_version",
        "edits": "edit_count",
        "replies": "reply_count",
        "helpful": "helpful_count",
        "same": "same_count",
        "thanks": "thanks_count",
        "reports": "report_count",
    },
    "comment_reactions": {"at": "created_at"},
    "comment_reports": {"at": "reported_at", "settled": "resolved"},
    "comment_places": {"shown": "comment_count"},
    "problems": {"key": "idempotency_key", "handled_at": "resolved_at", "handled_by": "resolved_by"},
    "lesson_votes": {"sentence": "comment", "at": "updated_at"},
    "outbox": {"to": "recipient", "tries": "attempts", "why": "last_error"},
    "notifications": {"mailed_at": "emailed_at"},
}
"""The renamed columns, by table."""

_DROPPED = {("attempts", "first_at")}
"""Columns that nothing used."""

_VALUES: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("accounts", "mailing"): {"at_once": "immediately"},
    ("outbox", "state"): {"doubtful": "unconfirmed"},
}
"""Renamed values, by table and column."""


def set_tables_aside(connection: Connection) -> None:
    """Rename the old tables to make room for those of the first version."""
    for table in _TABLES:
        _free_index_names(connection, table)
        connection.execute(text(f"ALTER TABLE {table} RENAME TO {_aside(table)}"))


def copy_rows(connection: Connection) -> None:
    """Copy the rows into the tables of the first version, and drop the old tables."""
    for before, now in _TABLES.items():
        source = Table(_aside(before), MetaData(), autoload_with=connection, resolve_fks=False)
        target = Table(now, MetaData(), autoload_with=connection, resolve_fks=False)
        kept = [column for column in source.c if (before, column.name) not in _DROPPED]
        names = [_COLUMNS.get(before, {}).get(column.name, column.name) for column in kept]
        values = [_value(before, column) for column in kept]
        connection.execute(insert(target).from_select(names, select(*values)))
    if connection.dialect.name == "sqlite":  # for DROP TABLE, which looks up the replies to each comment
        connection.execute(text(f"CREATE INDEX ix_aside_thread_id ON {_aside('comments')} (thread_id)"))
    for table in reversed(list(_TABLES)):
        connection.execute(text(f"DROP TABLE {_aside(table)}"))


def _aside(table: str) -> str:
    return f"aside_{table}"


def _free_index_names(connection: Connection, table: str) -> None:
    """Free the old tables' index names, which are unique across tables. PostgreSQL's key indexes cannot be dropped."""
    if connection.dialect.name == "postgresql":
        indexes = "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema() AND tablename = :table"
        free = "ALTER INDEX {0} RENAME TO aside_{0}"
    else:
        indexes = "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = :table"
        free = "DROP INDEX {0}"
    for index in connection.scalars(text(indexes), {"table": table}).all():
        connection.execute(text(free.format(index)))


def _value(table: str, column: Column[Any]) -> ColumnElement[Any]:
    renamed = _VALUES.get((table, column.name))
    return column if renamed is None else case(dict(renamed), value=column, else_=column)
