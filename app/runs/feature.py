"""Running cells in sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from app.accounts.cleanup import CleanupTask
from app.feature import Feature
from app.lessons.dependencies import CATALOG
from app.progress.service import PROGRESS
from app.runs.dispatcher import DISPATCHER, RunDispatcher
from app.runs.judgements import RUN_HOOKS
from app.runs.personal_data import RETENTION_RULES, erase_runs, export_runs, move_runs
from app.runs.quotas import QuotaLimits
from app.runs.routes import router
from app.runs.session_routes import router as session_router
from app.runs.sweeper import OutputSweeper
from app.settings import is_public_url
from app.web.access import Access
from app.web.dependencies import BUS, DATABASE, ONLY_LOCAL, RUNNER, SETTINGS
from runners.wire.client import RunnerClient


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Dispatch runs, and follow those that an earlier process left unfinished."""
    settings = SETTINGS.get(app)
    untrusted = not ONLY_LOCAL.get(app) or is_public_url(settings.public_url)
    runner = RUNNER.set(app, RunnerClient(settings.socket, untrusted_users=untrusted))
    dispatcher = DISPATCHER.set(
        app,
        RunDispatcher(
            settings,
            DATABASE.get(app),
            runner,
            BUS.get(app),
            CATALOG.get(app),
            PROGRESS.get(app),
            RUN_HOOKS.get(app),
        ),
    )
    try:
        await dispatcher.followers.resume()
        yield
    finally:
        await dispatcher.followers.close()
        await runner.close()


def cleanup_tasks(app: FastAPI) -> list[CleanupTask]:
    return [OutputSweeper(QuotaLimits.of(SETTINGS.get(app)))]


FEATURE = Feature(
    name="runs",
    routers=(router, session_router),
    access={
        "create_run": Access.learner,
        "list_runs": Access.learner,
        "show_run": Access.learner,
        "run_events": Access.learner,
        "run_stream": Access.learner,
        "stop_run": Access.learner,
        "run_display": Access.learner,
        "session_panel": Access.learner,
        "session_start": Access.learner,
        "session_stream": Access.learner,
        "session_restart": Access.learner,
        "session_keep": Access.learner,
        "session_interrupt": Access.learner,
        "session_failure": Access.learner,
    },
    lifespan=lifespan,
    cleanup_tasks=cleanup_tasks,
    exporters={"runs": export_runs},
    erasers=(erase_runs,),
    mergers=lambda _app: (move_runs,),
    retention_rules=RETENTION_RULES,
)
