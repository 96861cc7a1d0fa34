"""The SQL statements of requests, without those of the application's own tasks."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from sqlalchemy import event

from app.observability import request_id


def statements_of_requests(app: FastAPI) -> list[str]:
    """A list that every statement of a request is added to from now on."""
    statements: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if request_id():
            statements.append(statement)

    event.listen(app.state.db.engine.sync_engine, "before_cursor_execute", note)
    return statements
