"""The playground over HTTP: its page, opening files, and shared copies.

Contexts of the templates:

``playground/playground.html``
    ``lesson``, ``machines``: labels by topology.
``playground/shared.html``
    ``lesson``, ``machines``, ``share`` (SharedPlayground).
``playground/shares.html``
    ``account``, ``shares`` (SharedPlayground), ``new``: the ID of the copy that was just made, or empty, ``origin``:
    what precedes a path in a link to this site, ``error``: what was wrong with the form, ``title``: what was typed.
``playground/owner.html``
    ``share``, ``may_revoke``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import Field
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from app.accounts.dependencies import OptionalAccount, RequiredAccount
from app.accounts.models import Account
from app.db import Database
from app.errors import InvalidInput
from app.lessons.machine_labels import topology_label
from app.lessons.model import Lesson
from app.lessons.untrusted_markdown import run_in_render_thread
from app.playground.notebook_file import read_notebook_file
from app.playground.pages import TOPOLOGIES, own_playground
from app.playground.sharing import (
    as_lesson,
    fork_share,
    get_share,
    list_shares,
    may_revoke,
    revoke_share,
    share_playground,
)
from app.runs.dispatcher import RequestedQuotaOwner, RunDispatcherDep
from app.runs.machines import choose_machine, lesson_machines
from app.runs.scratch_cells import add_scratch_cells
from app.web.access import Access
from app.web.dependencies import DatabaseDep, site_origin
from app.web.forms import FormFields, count_field
from app.web.json_request import JsonRequest
from app.web.languages import LANGUAGE_PREFIX
from app.web.rendering import is_htmx_request, render_cached_page, render_fragment, render_page
from app.web.security_headers import NO_STORE
from app.web.user_text import redisplayed_text

router = APIRouter(prefix=f"{LANGUAGE_PREFIX}/playground")

ShareId = Annotated[str, Path(max_length=64)]
_UNLISTED = {"x-robots-tag": "noindex", "cache-control": "no-cache"}


class FileIn(JsonRequest):
    """A notebook or a script from the learner's disk."""

    name: Annotated[str, Field(max_length=300)]
    text: str


@router.get("", name="playground", tags=[Access.public])
async def show_playground(request: Request, lang: str) -> Response:
    return render_cached_page(request, "playground/playground.html", lambda: _page_context(own_playground(lang)))


@router.post("/open", name="open_file", tags=[Access.learner])
async def open_file(lang: str, asked: FileIn, owner: RequestedQuotaOwner, dispatcher: RunDispatcherDep) -> Response:
    """Add the cells of a file to the end of the playground."""
    dispatcher.quotas.admit(owner, asked.text)
    cells = await asyncio.to_thread(read_notebook_file, asked.name, asked.text)
    async with dispatcher.db.writing() as session:
        added = await add_scratch_cells(session, owner.learner, own_playground(lang), None, cells)
        names = [cell.name for cell in added]
    return JSONResponse({"cells": names}, headers=NO_STORE)


@router.get("/shares", name="shared_playgrounds", tags=[Access.learner])
async def show_shares(request: Request, lang: str, account: OptionalAccount, db: DatabaseDep) -> HTMLResponse:
    return await _shares_response(request, db, account)


@router.post("/shares", name="share_playground", tags=[Access.account])
async def share(
    request: Request, lang: str, account: RequiredAccount, fields: FormFields, db: DatabaseDep
) -> HTMLResponse:
    title = fields.get("title", "")
    machines = lesson_machines(own_playground(lang))
    try:
        machine = choose_machine(machines, fields.get("topology") or None, count_field(fields, "keras"))
        async with db.writing() as session:
            made = (await share_playground(session, account, title, machine)).id
    except InvalidInput as problem:
        typed = {"error": problem.localized_message(), "title": redisplayed_text(title)}
        return await _shares_response(request, db, account, problem.status, **typed)
    return await _shares_response(request, db, account, new=made)


@router.get("/shared/{share_id}", name="shared_playground", tags=[Access.public])
async def show_shared(request: Request, lang: str, share_id: ShareId, db: DatabaseDep) -> HTMLResponse:
    """A shared copy, for everyone who knows its address; search engines are told to leave it out."""
    async with db.session() as session:
        share = await get_share(session, share_id)
    lesson = await run_in_render_thread(as_lesson, share, lang)
    context = {**_page_context(lesson), "share": share, "canonical": None}
    page = render_page(request, "playground/shared.html", **context)
    page.headers.update(_UNLISTED)
    return page


@router.get("/shared/{share_id}/owner", name="shared_playground_owner", tags=[Access.learner])
async def show_owner_tools(
    request: Request, lang: str, share_id: ShareId, account: OptionalAccount, db: DatabaseDep
) -> HTMLResponse:
    async with db.session() as session:
        share = await get_share(session, share_id)
    return render_fragment(request, "playground/owner.html", share=share, may_revoke=may_revoke(account, share))


@router.post("/shared/{share_id}/fork", name="fork_playground", tags=[Access.learner])
async def fork(
    request: Request, lang: str, share_id: ShareId, owner: RequestedQuotaOwner, dispatcher: RunDispatcherDep
) -> Response:
    async with dispatcher.db.writing() as session:
        share = await get_share(session, share_id)
        dispatcher.quotas.admit(owner, share.cells)
        await fork_share(session, owner.learner, share, lang)
    return RedirectResponse(request.app.url_path_for("playground", lang=lang), 303, NO_STORE)


@router.post("/shared/{share_id}/revoke", name="revoke_playground", tags=[Access.account])
async def revoke(request: Request, lang: str, share_id: ShareId, account: RequiredAccount, db: DatabaseDep) -> Response:
    async with db.writing() as session:
        await revoke_share(session, account, share_id)
    if is_htmx_request(request):
        return await _shares_response(request, db, account)
    return RedirectResponse(request.app.url_path_for("playground", lang=lang), 303, NO_STORE)


def _page_context(lesson: Lesson) -> Mapping[str, Any]:
    return {
        "lesson": lesson,
        "machines": {topology: topology_label(topology) for topology in TOPOLOGIES},
    }


async def _shares_response(
    request: Request,
    db: Database,
    account: Account | None,
    http_status: int = 200,
    *,
    new: str = "",
    error: str = "",
    title: str = "",
) -> HTMLResponse:
    shares = []
    if account is not None:
        async with db.session() as session:
            shares = list(await list_shares(session, account))
    return render_fragment(
        request,
        "playground/shares.html",
        http_status,
        account=account,
        shares=shares,
        origin=site_origin(request),
        new=new,
        error=error,
        title=title,
    )
