"""A learner's own runs and edits of cells in the API."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Annotated, Any

from fastapi import Query
from starlette.responses import Response

from app.accounts.api_access import ApiCaller, api_caller
from app.accounts.api_tokens import TokenScope
from app.runs.code_drafts import load_drafts_after
from app.runs.event_log import read_events
from app.runs.models import CodeDraft, Run
from app.runs.printed_lines import PRINTED_KINDS, printed_lines
from app.runs.service import get_run, load_runs_before
from app.web.access import Access
from app.web.api import (
    DEFAULT_PAGE_SIZE,
    ApiModel,
    Cursor,
    ListPage,
    PageSize,
    api_router,
    make_page,
    problem_responses,
    read_cursor,
)
from app.web.dependencies import DatabaseDep
from app.web.security_headers import NO_STORE

router = api_router(Access.token, "Work")

Caller = Annotated[ApiCaller, api_caller(TokenScope.work)]
LessonKey = Annotated[
    str, Query(max_length=200, pattern="^[^\x00]*$", description="`course/slug`: only the runs of this lesson.")
]
_ERRORS = problem_responses(401, 403, 422, 429)


class CodeDraftOut(ApiModel):
    """An edit of a cell that has not been reset."""

    lesson: str
    """`course/slug`."""
    cell: str
    code: str
    updated_at: datetime


class RunSummaryOut(ApiModel):
    """A run of a cell, or a submission to an exercise."""

    id: str
    lesson: str
    """`course/slug`."""
    cell: str
    topology: str
    """The machine: `gpu:4`, for example."""
    keras: int
    submission: bool
    """Whether it was submitted to an exercise."""
    state: str
    """`queued`, `running` or `finished`."""
    outcome: str | None
    """How it ended: `ok`, `error`, `timeout`, …"""
    created_at: datetime
    finished_at: datetime | None
    duration_ms: int | None


class RunDetailsOut(RunSummaryOut):
    """A run with its code and what it printed."""

    code: str
    printed: list[str]
    """The lines that it printed, without colors and empty lines. Empty after `output_deleted_at`."""
    output_deleted_at: datetime | None


@router.get("/drafts", name="api_drafts", responses=_ERRORS)
async def list_drafts(
    caller: Caller, response: Response, db: DatabaseDep, cursor: Cursor = "", limit: PageSize = DEFAULT_PAGE_SIZE
) -> ListPage[CodeDraftOut]:
    """The edits of cells, by lesson and cell."""
    response.headers.update(NO_STORE)
    lesson, cell = read_cursor(cursor, 2) or ("", "")
    async with db.session() as session:
        found = await load_drafts_after(session, caller.account, lesson, cell, limit + 1)
    return make_page(found, limit, _draft_out, lambda draft: (draft.lesson, draft.cell))


@router.get("/runs", name="api_runs", responses=_ERRORS)
async def list_runs(
    caller: Caller,
    response: Response,
    db: DatabaseDep,
    lesson: LessonKey = "",
    cursor: Cursor = "",
    limit: PageSize = DEFAULT_PAGE_SIZE,
) -> ListPage[RunSummaryOut]:
    """The runs and submissions, the newest first."""
    response.headers.update(NO_STORE)
    (before,) = read_cursor(cursor, 1) or ("",)
    async with db.session() as session:
        found = await load_runs_before(session, caller.account.learner_id, lesson, before, limit + 1)
    return make_page(found, limit, lambda run: RunSummaryOut(**_facts(run)), lambda run: (run.id,))


@router.get("/runs/{run_id}", name="api_run", responses=problem_responses(401, 403, 404, 422, 429))
async def show_run(caller: Caller, response: Response, db: DatabaseDep, run_id: str) -> RunDetailsOut:
    """A run with its code and what it printed."""
    response.headers.update(NO_STORE)
    async with db.session() as session:
        run = await get_run(session, caller.account.learner_id, run_id)
        events = await read_events(session, run.id, *PRINTED_KINDS)
    lines = await asyncio.to_thread(printed_lines, events)  # of megabytes, perhaps
    printed = [line.encode(errors="replace").decode() for line in lines if line]  # JSON has no halves of characters
    return RunDetailsOut(**_facts(run), code=run.code, printed=printed, output_deleted_at=run.pruned_at)


def _facts(run: Run) -> dict[str, Any]:
    names = ("id", "lesson", "cell", "topology", "keras", "state", "outcome", "created_at", "finished_at")
    return {name: getattr(run, name) for name in (*names, "duration_ms")} | {"submission": run.judgement}


def _draft_out(draft: CodeDraft) -> CodeDraftOut:
    return CodeDraftOut(lesson=draft.lesson, cell=draft.cell, code=draft.code or "", updated_at=draft.updated_at)
