"""Who may use which route: every route by name, and nothing by default. A test walks the routes."""

from __future__ import annotations

from enum import StrEnum


class Access(StrEnum):
    """Who a route is for."""

    public = "public"
    """The same for everyone."""
    visitor = "visitor"
    """Shows or changes only what belongs to the visitor who asks; someone else's is not found."""


ACCESS: dict[str, Access] = {
    "static": Access.public,
    "healthz": Access.public,
    "readyz": Access.public,
    "root": Access.public,
    "home": Access.public,
    "course": Access.public,
    "lesson": Access.public,
    "lesson_source": Access.public,
    "lesson_asset": Access.public,
    "notebook": Access.visitor,
    "create_run": Access.visitor,
    "list_runs": Access.visitor,
    "show_run": Access.visitor,
    "run_events": Access.visitor,
    "run_stream": Access.visitor,
    "run_display": Access.visitor,
    "stop_run": Access.visitor,
    "session_panel": Access.visitor,
    "session_start": Access.visitor,
    "session_keep": Access.visitor,
    "session_restart": Access.visitor,
    "session_interrupt": Access.visitor,
    "session_fault": Access.visitor,
}
