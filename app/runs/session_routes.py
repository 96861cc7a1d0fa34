"""The session panel of a lesson: a fragment, and the buttons that answer with it."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from app.accounts.current import CurrentAccount, KnownLearner, Learner
from app.runs import sessions
from app.runs.desk import AskedLesson, TheDesk
from app.runs.errors import AddressFull, FaultUnknown
from app.runs.faults import inject
from app.runs.machines import Machine, choose, machines
from app.web.languages import PREFIX
from app.web.page import fragment
from app.web.sse import event_stream
from runners.client import RunnerError
from runners.protocol import Fault

router = APIRouter(prefix=f"{PREFIX}/session")

_PANEL = "runs/session_panel.html"
_MOST_FIELDS = 8


async def _chosen(
    lesson: AskedLesson, topology: str | None = None, keras: int | None = None, exactly: bool = False
) -> sessions.Wanted:
    return sessions.Wanted(choose(machines(lesson), topology, keras), exactly)


async def _machine(wanted: Annotated[sessions.Wanted, Depends(_chosen)]) -> Machine:
    return wanted.machine


Chosen = Annotated[sessions.Wanted, Depends(_chosen)]
"""The machine named by ``?topology=…&keras=…``, one of those that the lesson offers; the lesson's own if none is.

With ``&exactly=true`` the panel shows that machine's session and acts on it alone; otherwise on all of the lesson, of
which it shows the liveliest.
"""
ChosenMachine = Annotated[Machine, Depends(_machine)]


@router.get("", name="session_panel")
async def show(
    request: Request, lang: str, lesson: AskedLesson, chosen: Chosen, learner: KnownLearner, desk: TheDesk
) -> HTMLResponse:
    session = await sessions.look(desk.runner, learner, lesson, chosen, lambda: desk.ever_ran(learner, lesson))
    return fragment(request, _PANEL, session=session)


@router.post("", name="session_start")
async def start(
    request: Request, lang: str, lesson: AskedLesson, chosen: Chosen, learner: Learner, desk: TheDesk
) -> HTMLResponse:
    try:
        desk.admit(request, learner)
    except AddressFull:  # said when Run is pressed; who only reads need not hear of it
        return fragment(request, _PANEL, session=await sessions.look(desk.runner, learner, lesson, chosen))
    return fragment(request, _PANEL, session=await sessions.warm_up(desk.runner, learner, lesson, chosen))


@router.get("/stream", name="session_stream")
async def stream(
    request: Request, lang: str, lesson: AskedLesson, learner: KnownLearner, account: CurrentAccount, desk: TheDesk
) -> Response:
    try:
        idle = await sessions.idle_sessions(desk.runner, learner, lesson)
    except RunnerError:
        idle = []
    if learner is None or not idle:
        return Response(status_code=204)  # tells an EventSource not to come back
    address = request.client.host if request.client is not None and account is None else None
    return event_stream(desk.streams.seated(learner, address, sessions.until_gone(desk.runner, desk.bus, idle)))


@router.post("/restart", name="session_restart")
async def restart(
    request: Request, lang: str, lesson: AskedLesson, chosen: Chosen, learner: KnownLearner, desk: TheDesk
) -> HTMLResponse:
    return fragment(request, _PANEL, session=await sessions.restart(desk.runner, learner, lesson, chosen))


@router.post("/keep", name="session_keep")
async def keep(
    request: Request, lang: str, lesson: AskedLesson, chosen: Chosen, learner: KnownLearner, desk: TheDesk
) -> HTMLResponse:
    return fragment(request, _PANEL, session=await sessions.keep(desk.runner, learner, lesson, chosen))


@router.post("/interrupt", name="session_interrupt")
async def interrupt(
    request: Request, lang: str, lesson: AskedLesson, chosen: Chosen, learner: KnownLearner, desk: TheDesk
) -> HTMLResponse:
    return fragment(request, _PANEL, session=await sessions.interrupt(desk.runner, learner, lesson, chosen))


@router.post("/faults", name="session_fault")
async def do_fault(
    request: Request, lang: str, lesson: AskedLesson, chosen: ChosenMachine, learner: KnownLearner, desk: TheDesk
) -> HTMLResponse:
    """``task``, ``action`` and, if it is to wait for one, ``at_step`` are a form's fields."""
    fault = await _fault(request)
    answer = await inject(desk.runner, learner, lesson.key, chosen, fault)
    url = f"{request.url.path}?{request.url.query}"
    made = fragment(request, "runs/fault.html", answer=answer, task=fault.task, url=url)
    made.headers["hx-trigger"] = "lockstep:session"
    return made


async def _fault(request: Request) -> Fault:
    try:
        fields = parse_qsl((await request.body()).decode("utf-8", "replace"), max_num_fields=_MOST_FIELDS)
        return Fault.model_validate(dict(fields))
    except ValueError as e:
        raise FaultUnknown from e
