"""Scratch cells over HTTP: fragments for the page to insert, and JSON for changes.

Contexts of the templates:

``runs/scratch_cells.html``
    ``lesson``, ``machines``: labels by topology, ``cells``: ScratchView, in the order of the page, ``text``: whether
    the page offers texts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Path
from markupsafe import Markup
from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app.accounts.dependencies import LearnerId, OptionalLearnerId
from app.i18n import gettext
from app.lessons.highlight import highlight_learners_code
from app.lessons.machine_labels import topology_label
from app.lessons.model import Cell, Lesson
from app.lessons.untrusted_markdown import render_untrusted_markdown, render_untrusted_texts, run_in_render_thread
from app.runs.dispatcher import RequestedQuotaOwner, RunDispatcherDep
from app.runs.lesson_lookup import RequestedLesson
from app.runs.models import ScratchCell
from app.runs.scratch_cells import (
    NAME_PATTERN,
    NewCell,
    ScratchChange,
    ScratchKind,
    add_scratch_cells,
    as_cell,
    change_scratch_cell,
    delete_scratch_cell,
    delete_scratch_cells,
    in_page_order,
    list_scratch_cells,
    move_scratch_cell,
)
from app.web.access import Access
from app.web.json_request import JsonRequest
from app.web.languages import LANGUAGE_PREFIX
from app.web.rendering import render_fragment
from app.web.security_headers import NO_STORE

router = APIRouter(prefix=f"{LANGUAGE_PREFIX}/scratch-cells", tags=[Access.learner])

ScratchName = Annotated[str, Path(pattern=f"^{NAME_PATTERN}$")]
CellName = Annotated[str, Field(max_length=100, pattern=r"^[^\x00]*$")]


class NewCellIn(JsonRequest):
    """A cell to add after the cell ``after``. ``name`` brings back one that was deleted."""

    after: CellName
    kind: ScratchKind = "code"
    source: str = ""
    title: str = ""
    name: Annotated[str, Field(pattern=f"^({NAME_PATTERN})?$")] = ""


class ChangeIn(JsonRequest):
    """A change to a cell: its source, its title, or both."""

    source: str | None = None
    title: str | None = None
    seen_version: Annotated[int, Field(ge=1, lt=2**31)]


class MoveIn(JsonRequest):
    after: CellName


@dataclass(frozen=True, slots=True)
class ScratchView:
    """A scratch cell on its page."""

    scratch: ScratchCell
    after: str
    """The lesson's cell that it follows on the page; empty at its start."""
    cell: Cell | None
    """None if it is a text."""
    html: Markup
    """The text; empty for code."""
    title: str
    """The learner's title, or a number."""


@router.get("", name="scratch_cells")
async def show_scratch_cells(
    request: Request, lang: str, lesson: RequestedLesson, learner: OptionalLearnerId, dispatcher: RunDispatcherDep
) -> Response:
    async with dispatcher.db.session() as session:
        cells = await list_scratch_cells(session, learner, lesson.key)
    return await _fragment(request, lesson, cells, {cell.name for cell in cells})


@router.post("", status_code=201, name="add_scratch_cell")
async def add_scratch_cell(
    request: Request,
    lang: str,
    asked: NewCellIn,
    lesson: RequestedLesson,
    owner: RequestedQuotaOwner,
    dispatcher: RunDispatcherDep,
) -> Response:
    dispatcher.quotas.admit(owner, asked.source)
    new = NewCell(asked.kind, asked.source, asked.title, asked.name)
    async with dispatcher.db.writing() as session:
        added = await add_scratch_cells(session, owner.learner, lesson, asked.after, [new])
        cells = await list_scratch_cells(session, added[0].learner_id, lesson.key) if added else []
    return await _fragment(request, lesson, cells, {cell.name for cell in added}, http_status=201)


@router.put("/{name}", name="change_scratch_cell")
async def save_scratch_cell(
    lang: str,
    name: ScratchName,
    asked: ChangeIn,
    lesson: RequestedLesson,
    owner: RequestedQuotaOwner,
    dispatcher: RunDispatcherDep,
) -> Response:
    """The cell that is then stored: another browser's, if that has changed it since this one saw it."""
    dispatcher.quotas.admit(owner, asked.source or "")
    change = ScratchChange(asked.seen_version, asked.source, asked.title)
    async with dispatcher.db.writing() as session:
        stored = await change_scratch_cell(session, owner.learner, lesson.key, name, change)
        answer = {"source": stored.source, "title": stored.title, "version": stored.version}
        answer["updated_at"] = stored.updated_at.isoformat()
    html = str(await run_in_render_thread(render_untrusted_markdown, stored.source)) if stored.kind == "text" else ""
    return JSONResponse(answer | {"html": html}, headers=NO_STORE)


@router.post("/{name}/move", status_code=204, name="move_scratch_cell")
async def put_scratch_cell_elsewhere(
    lang: str,
    name: ScratchName,
    asked: MoveIn,
    lesson: RequestedLesson,
    learner: LearnerId,
    dispatcher: RunDispatcherDep,
) -> Response:
    async with dispatcher.db.writing() as session:
        await move_scratch_cell(session, learner, lesson, name, asked.after)
    return Response(status_code=204, headers=NO_STORE)


@router.delete("/{name}", status_code=204, name="delete_scratch_cell")
async def remove_scratch_cell(
    lang: str, name: ScratchName, lesson: RequestedLesson, learner: LearnerId, dispatcher: RunDispatcherDep
) -> Response:
    async with dispatcher.db.writing() as session:
        await delete_scratch_cell(session, learner, lesson.key, name)
    return Response(status_code=204, headers=NO_STORE)


@router.delete("", status_code=204, name="delete_scratch_cells")
async def remove_scratch_cells(
    lang: str, lesson: RequestedLesson, learner: LearnerId, dispatcher: RunDispatcherDep
) -> Response:
    async with dispatcher.db.writing() as session:
        await delete_scratch_cells(session, learner, lesson.key)
    return Response(status_code=204, headers=NO_STORE)


async def _fragment(
    request: Request, lesson: Lesson, page: Sequence[ScratchCell], shown: Collection[str], http_status: int = 200
) -> Response:
    """Some cells of a page as HTML; 204 if there are none."""
    if not shown:
        return Response(status_code=204, headers=NO_STORE)
    # Highlighting much code and rendering much text takes too long for the event loop.
    views = await run_in_render_thread(_views, lesson, page, shown)
    return render_fragment(
        request,
        "runs/scratch_cells.html",
        http_status,
        lesson=lesson,
        machines={view.cell.topology: topology_label(view.cell.topology) for view in views if view.cell is not None},
        cells=views,
        text=not lesson.cells,
    )


def _views(lesson: Lesson, page: Sequence[ScratchCell], shown: Collection[str]) -> list[ScratchView]:
    """The cells named in ``shown``. Those without a title are numbered in the order in which they were added."""
    codes = sorted((cell for cell in page if cell.kind == "code"), key=lambda cell: (cell.created_at, cell.name))
    numbers = {cell.name: number for number, cell in enumerate(codes, 1)}
    ordered = [
        (scratch, after)
        for after, group in in_page_order(page, lesson).items()
        for scratch in group
        if scratch.name in shown
    ]
    highlighted = highlight_learners_code(scratch.source for scratch, _ in ordered if scratch.kind == "code")
    texts = render_untrusted_texts(scratch.source for scratch, _ in ordered if scratch.kind == "text")
    return [
        _view_text(scratch, after, next(texts))
        if scratch.kind == "text"
        else _view_code(lesson, scratch, after, numbers[scratch.name], next(highlighted))
        for scratch, after in ordered
    ]


def _view_text(scratch: ScratchCell, after: str, html: Markup) -> ScratchView:
    return ScratchView(scratch, after, None, html, gettext("Your text"))


def _view_code(lesson: Lesson, scratch: ScratchCell, after: str, number: int, highlighted: Markup) -> ScratchView:
    title = scratch.title or gettext("Your cell {number}").format(number=number)
    return ScratchView(scratch, after, as_cell(scratch, lesson, title, highlighted), Markup(), title)
