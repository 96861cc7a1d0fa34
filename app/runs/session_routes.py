"""Routes of the session panel: the fragment, and the buttons, which return it."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from app.accounts.dependencies import LearnerId, OptionalLearnerId
from app.accounts.disabled_accounts import DisabledAccountsDep
from app.runs import session_panel
from app.runs.dispatcher import RunDispatcherDep, VisitorAddress
from app.runs.errors import AddressLimitReached, InvalidFailureAction, NoNewSessions
from app.runs.failure_injection import inject_failure
from app.runs.lesson_lookup import RequestedLesson
from app.runs.machines import Machine, choose_machine, lesson_machines
from app.web.access import Access
from app.web.client_network import ClientAddress
from app.web.forms import read_form_body
from app.web.languages import LANGUAGE_PREFIX
from app.web.rendering import render_fragment
from app.web.sse import event_stream
from runners.wire.client import RunnerError
from runners.wire.protocol import InjectedFailure

router = APIRouter(prefix=f"{LANGUAGE_PREFIX}/session", tags=[Access.learner])

_PANEL_TEMPLATE = "runs/session_panel.html"
_MAX_FIELDS = 8


async def _selected_session(
    lesson: RequestedLesson, topology: str | None = None, keras: int | None = None, exactly: bool = False
) -> session_panel.SessionSelection:
    return session_panel.SessionSelection(choose_machine(lesson_machines(lesson), topology, keras), exactly)


async def _selected_machine(wanted: Annotated[session_panel.SessionSelection, Depends(_selected_session)]) -> Machine:
    return wanted.machine


SelectedSession = Annotated[session_panel.SessionSelection, Depends(_selected_session)]
"""The machine in ``?topology=…&keras=…``, which the lesson must offer; by default the lesson's own.

With ``&exactly=true`` the panel shows that machine's session and acts on it alone; otherwise it shows the most active
session of the lesson and acts on all of them.
"""
SelectedMachine = Annotated[Machine, Depends(_selected_machine)]


@router.get("", name="session_panel")
async def show_panel(
    request: Request,
    lang: str,
    lesson: RequestedLesson,
    chosen: SelectedSession,
    learner: OptionalLearnerId,
    dispatcher: RunDispatcherDep,
) -> HTMLResponse:
    session = await session_panel.load_panel(
        dispatcher.runner, learner, lesson, chosen, lambda: dispatcher.has_run_lesson(learner, lesson)
    )
    return render_fragment(request, _PANEL_TEMPLATE, session=session)


@router.post("", name="session_start")
async def start_session(
    request: Request,
    lang: str,
    lesson: RequestedLesson,
    chosen: SelectedSession,
    learner: LearnerId,
    address: ClientAddress,
    dispatcher: RunDispatcherDep,
) -> HTMLResponse:
    try:
        dispatcher.admit(address, learner)
        if dispatcher.drained:
            raise NoNewSessions
    except (AddressLimitReached, NoNewSessions):  # reported when the learner presses Run; readers need not know
        return render_fragment(
            request, _PANEL_TEMPLATE, session=await session_panel.load_panel(dispatcher.runner, learner, lesson, chosen)
        )
    return render_fragment(
        request, _PANEL_TEMPLATE, session=await session_panel.warm_up(dispatcher.runner, learner, lesson, chosen)
    )


@router.get("/stream", name="session_stream")
async def stream_session(
    lang: str,
    lesson: RequestedLesson,
    learner: OptionalLearnerId,
    address: VisitorAddress,
    dispatcher: RunDispatcherDep,
    disabled: DisabledAccountsDep,
) -> Response:
    try:
        idle = await session_panel.idle_sessions(dispatcher.runner, learner, lesson)
    except RunnerError:
        idle = []
    if learner is None or not idle:
        return Response(status_code=204)  # tells an EventSource not to reconnect
    frames = session_panel.watch_until_gone(dispatcher.runner, dispatcher.bus, idle)
    return event_stream(dispatcher.streams.seated(learner, address, frames), disabled.watch(learner))


def _add_button(action: session_panel.SessionAction) -> None:
    """Add the route of a panel button; its response is the panel."""

    async def press_button(
        request: Request,
        lang: str,
        lesson: RequestedLesson,
        chosen: SelectedSession,
        learner: OptionalLearnerId,
        dispatcher: RunDispatcherDep,
    ) -> HTMLResponse:
        session = await session_panel.act_on_sessions(dispatcher.runner, learner, lesson, chosen, action)
        return render_fragment(request, _PANEL_TEMPLATE, session=session)

    router.add_api_route(f"/{action}", press_button, methods=["POST"], name=f"session_{action}")


_add_button("restart")
_add_button("keep")
_add_button("interrupt")


@router.post("/failures", name="session_failure")
async def inject_session_failure(
    request: Request,
    lang: str,
    lesson: RequestedLesson,
    chosen: SelectedMachine,
    learner: OptionalLearnerId,
    dispatcher: RunDispatcherDep,
) -> HTMLResponse:
    """Inject a failure. The form has the fields ``task``, ``action`` and, to wait for a step, ``at_step``."""
    failure = await _parse_failure(request)
    answer = await inject_failure(dispatcher.runner, learner, lesson.key, chosen, failure)
    url = f"{request.url.path}?{request.url.query}"
    made = render_fragment(request, "runs/injection_result.html", answer=answer, task=failure.task, url=url)
    made.headers["hx-trigger"] = "lockstep:session"
    return made


async def _parse_failure(request: Request) -> InjectedFailure:
    try:
        fields = parse_qsl((await read_form_body(request)).decode("utf-8", "replace"), max_num_fields=_MAX_FIELDS)
        return InjectedFailure.model_validate(dict(fields))
    except ValueError as e:
        raise InvalidFailureAction from e
