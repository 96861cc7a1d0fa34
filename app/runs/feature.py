"""Running cells in sessions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from fastapi import FastAPI

from app.feature import Feature
from app.lessons.dependencies import CATALOG
from app.progress.service import PROGRESS
from app.runs.api_routes import router as api_router
from app.runs.disabled_accounts import end_runs_of_disabled_accounts, end_sessions_of_disabled_accounts
from app.runs.dispatcher import DISPATCHER, RunDispatcher
from app.runs.display_routes import router as display_router
from app.runs.draft_routes import router as draft_router
from app.runs.editor_texts import router as editor_text_router
from app.runs.error_hints import router as hint_router
from app.runs.introspection_routes import router as introspection_router
from app.runs.judgements import RUN_HOOKS
from app.runs.personal_data import (
    RETENTION_RULES,
    end_sessions,
    erase_runs,
    erase_scratch_cells,
    export_code_drafts,
    export_runs,
    export_scratch_cells,
    move_runs,
    move_scratch_cells,
)
from app.runs.quotas import QuotaLimits
from app.runs.renaming import rename_runs
from app.runs.routes import router
from app.runs.scratch_routes import router as scratch_router
from app.runs.session_routes import router as session_router
from app.runs.sweeper import OutputSweeper
from app.settings import is_public_url
from app.web.dependencies import BUS, DATABASE, ONLY_LOCAL, RUNNER, SETTINGS
from app.web.maintenance import SWITCHES
from runners.wire.client import RunnerClient

_ENDING_S = 2.0
"""How long the end of a disabled account's runs may take when the server shuts down."""


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Dispatch runs, and follow those that another process left unfinished."""
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
            SWITCHES.get(app),
        ),
    )
    watched = DATABASE.get(app), runner, BUS.get(app)
    ending = {
        asyncio.create_task(end_runs_of_disabled_accounts(*watched, dispatcher.followers)),
        asyncio.create_task(end_sessions_of_disabled_accounts(*watched)),
    }
    try:
        await dispatcher.followers.adopt()
        yield
    finally:
        # They end by themselves unless the start failed. Cancelled in a query, one would leave a SQLite thread behind.
        await asyncio.wait(ending, timeout=_ENDING_S if BUS.get(app).closed else 0)
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        await dispatcher.followers.close()
        await runner.close()


FEATURE = Feature(
    name="runs",
    routers=(
        router,
        display_router,
        session_router,
        draft_router,
        scratch_router,
        hint_router,
        introspection_router,
        editor_text_router,
        api_router,
    ),
    lifespan=lifespan,
    cleanup_tasks=lambda app: (OutputSweeper(QuotaLimits.of(SETTINGS.get(app))),),
    exporters={"runs": export_runs, "code_drafts": export_code_drafts, "scratch_cells": export_scratch_cells},
    renamers=(rename_runs,),
    erasers=(erase_runs, erase_scratch_cells),
    after_erasure=lambda app: (partial(end_sessions, app),),
    mergers=lambda _app: (move_runs, move_scratch_cells),
    retention_rules=RETENTION_RULES,
)
