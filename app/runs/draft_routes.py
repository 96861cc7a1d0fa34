"""Drafts of the code of cells over HTTP: JSON for the browsers of an account."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse, Response

from app.accounts.dependencies import RequiredAccount
from app.runs.code_drafts import DraftChange, load_drafts, save_draft
from app.runs.dispatcher import RunDispatcherDep
from app.runs.errors import CellNotFound
from app.runs.lesson_lookup import LessonLookupDep, RequestedLesson
from app.runs.models import CodeDraft
from app.runs.quotas import QuotaOwner
from app.web.access import Access
from app.web.json_request import JsonRequest
from app.web.security_headers import NO_STORE

router = APIRouter(tags=[Access.account])


class DraftIn(JsonRequest):
    """A change to a draft. ``lesson`` is ``course/slug``; no code means that the cell was reset."""

    lesson: str
    cell: str
    code: str | None
    original_digest: Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
    seen_version: Annotated[int, Field(ge=0, lt=2**31)]


class DraftOut(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    cell: str
    code: str | None
    original_digest: str
    version: int
    updated_at: datetime


class DraftsOut(BaseModel):
    drafts: list[DraftOut]


@router.get("/code-drafts", name="list_drafts")
async def list_drafts(lesson: RequestedLesson, account: RequiredAccount, dispatcher: RunDispatcherDep) -> Response:
    async with dispatcher.db.session() as session:
        found = await load_drafts(session, account, lesson.key)
    return _no_store_json(DraftsOut(drafts=[_draft_out(draft) for draft in found]))


@router.put("/code-drafts", name="save_draft")
async def save_code_draft(
    asked: DraftIn, account: RequiredAccount, lookup: LessonLookupDep, dispatcher: RunDispatcherDep
) -> Response:
    """The draft that is then stored: another browser's, if that has changed since this one saw it."""
    lesson = await lookup.lesson(asked.lesson)
    if (cell := lesson.cell(asked.cell)) is None:
        raise CellNotFound(cell=asked.cell[:100])
    # As if it were a run: that bounds what a browser can make the database write within an hour.
    dispatcher.quotas.admit(QuotaOwner(account.learner_id, account.role), asked.code or "")
    change = DraftChange(lesson.key, cell.name, asked.code, asked.original_digest, asked.seen_version)
    async with dispatcher.db.writing() as session:
        stored = _draft_out(await save_draft(session, account, change))
    return _no_store_json(stored)


def _draft_out(draft: CodeDraft) -> DraftOut:
    return DraftOut.model_validate(draft)


def _no_store_json(content: BaseModel) -> Response:
    return JSONResponse(content.model_dump(mode="json"), headers=NO_STORE)
