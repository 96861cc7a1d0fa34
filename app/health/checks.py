"""Health checks of the parts that Lockstep needs, with details for the log and ``lockstep doctor``."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass

import structlog
from sqlalchemy.exc import SQLAlchemyError

from app.database_health import classify_database_error, first_line
from app.db import Database
from app.errors import DatabaseUnavailable
from app.lessons.catalog import Catalog
from app.migrate import HEAD_REVISION, UnsupportedRevision, check_revision, current_revision
from runners.wire.client import RunnerClient, RunnerError

CHECK_TIMEOUT_S = 3.0
_log = structlog.get_logger("health")


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """One part and its state. ``detail`` is for operators: it may contain a path or a database's message."""

    name: str
    ok: bool
    detail: str
    refuses: bool = False
    """The part works but refuses to run code, for the reason in ``detail``."""
    reason: str = ""
    """A stable error code that anyone may see, if there is one: ``storage_full``."""


class ReadinessLog:
    """Logs why a part is not ready, once per reason: load balancers check every few seconds.

    A database words the same reason differently each time: PostgreSQL on a full disk names another file.
    """

    def __init__(self) -> None:
        self._logged: dict[str, str] = {}

    def note(self, checks: Iterable[HealthCheck]) -> None:
        """Log parts that are newly not ready or have a new reason, and when all are ready again."""
        found = {check.name: check for check in checks}
        for name, check in found.items():
            if self._logged.get(name) != (check.reason or check.detail):
                _log.warning("code execution disabled" if check.ok else "not ready", missing=name, detail=check.detail)
        if self._logged and not found:
            _log.warning("ready again")
        self._logged = {name: check.reason or check.detail for name, check in found.items()}


async def run_with_timeout(name: str, looking: Awaitable[HealthCheck]) -> HealthCheck:
    """The result of the check, or that it timed out."""
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            return await looking
    except TimeoutError:
        return HealthCheck(name, False, f"no response within {CHECK_TIMEOUT_S:g} s")


async def check_database(db: Database) -> HealthCheck:
    """The database responds, has this version's tables, and accepts writes."""
    if (file := db.file()) is not None and not file.exists():
        detail = f"there is no {file}: run 'lockstep db upgrade'"  # connecting would create it
        return HealthCheck("database", False, detail, reason=DatabaseUnavailable.code)
    try:
        revision = await current_revision(db)
        problem = await db.health.problem()
    except (SQLAlchemyError, OSError) as e:
        reason = (classify_database_error(e) or DatabaseUnavailable).code
        return HealthCheck("database", False, f"not responding: {first_line(e)}", reason=reason)
    if problem is not None:
        return HealthCheck("database", False, f"writing fails: {db.health.reason}", reason=problem.code)
    try:
        check_revision(revision)
    except UnsupportedRevision as e:
        return HealthCheck("database", False, str(e))
    if revision != HEAD_REVISION:
        return HealthCheck(
            "database",
            False,
            f"at revision {revision or 'none'} instead of {HEAD_REVISION}: run 'lockstep db upgrade'",
        )
    return HealthCheck("database", True, f"{db.engine.dialect.name}, at {revision}")


async def check_runner(runner: RunnerClient) -> HealthCheck:
    """The supervisor responds and can start sessions."""
    try:
        health = await runner.health()
    except RunnerError as e:
        return HealthCheck("runner", False, str(e)[:200])
    sessions = f"{health.sessions} of {health.max_sessions} sessions, {health.queued} queued"
    detail = f"{health.detail} ({sessions})" if health.detail else sessions
    detail = f"{health.refuses} ({sessions})" if health.refuses else detail
    ready = health.status == "ready"
    return HealthCheck("runner", ready, detail if ready else f"{health.status}: {detail}", refuses=bool(health.refuses))


def check_lessons(catalog: Catalog) -> HealthCheck:
    """There are lessons, and at least one can be read."""
    all_of_them = catalog.with_drafts
    lessons = sum(len(course.lessons) for course in all_of_them.courses("en"))
    if not lessons:
        return HealthCheck("lessons", False, f"there are no lessons in {catalog.root}")
    readable = len({lesson.key for lesson in all_of_them.every()})
    mistakes = sum(not problem.warning for problem in catalog.problems)
    detail = f"{readable} of {lessons} can be read"
    return HealthCheck(
        "lessons", readable > 0, f"{detail}; {mistakes} errors: run 'lockstep lesson check'" if mistakes else detail
    )
