"""The session panel of a lesson: a fragment, and the buttons that answer with it."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse

from app.accounts.visitor import KnownVisitor, Visitor
from app.runs import sessions
from app.runs.desk import AskedLesson, TheDesk
from app.runs.errors import AddressFull
from app.web.languages import PREFIX
from app.web.page import fragment

router = APIRouter(prefix=f"{PREFIX}/session")

_PANEL = "runs/session_panel.html"


@router.get("", name="session_panel")
async def show(request: Request, lang: str, lesson: AskedLesson, visitor: KnownVisitor, desk: TheDesk) -> HTMLResponse:
    session = await sessions.look(desk.runner, visitor, lesson, lambda: desk.ever_ran(visitor, lesson))
    return fragment(request, _PANEL, session=session)


@router.post("", name="session_start")
async def start(request: Request, lang: str, lesson: AskedLesson, visitor: Visitor, desk: TheDesk) -> HTMLResponse:
    try:
        desk.admit(request, visitor)
    except AddressFull:  # said when Run is pressed; who only reads need not hear of it
        return fragment(request, _PANEL, session=await sessions.look(desk.runner, visitor, lesson))
    return fragment(request, _PANEL, session=await sessions.warm_up(desk.runner, visitor, lesson))


@router.post("/restart", name="session_restart")
async def restart(
    request: Request, lang: str, lesson: AskedLesson, visitor: KnownVisitor, desk: TheDesk
) -> HTMLResponse:
    return fragment(request, _PANEL, session=await sessions.restart(desk.runner, visitor, lesson))


@router.post("/keep", name="session_keep")
async def keep(request: Request, lang: str, lesson: AskedLesson, visitor: KnownVisitor, desk: TheDesk) -> HTMLResponse:
    return fragment(request, _PANEL, session=await sessions.keep(desk.runner, visitor, lesson))


@router.post("/interrupt", name="session_interrupt")
async def interrupt(
    request: Request, lang: str, lesson: AskedLesson, visitor: KnownVisitor, desk: TheDesk
) -> HTMLResponse:
    return fragment(request, _PANEL, session=await sessions.interrupt(desk.runner, visitor, lesson))
