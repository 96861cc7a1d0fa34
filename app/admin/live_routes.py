"""The admin page of the runner.

``admin/live.html`` gets ``runner`` (RunnerView or None) and ``drained`` (since when).
"""

from __future__ import annotations

from enum import StrEnum

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from app.accounts.dependencies import RequiredAdmin
from app.admin.audit import Actor, AuditAction, record_action
from app.admin.live import SessionOver, find_session, load_runner, stop_session
from app.admin.responses import admin_page, redirect_to_page
from app.admin.switching import turn_switch
from app.errors import InvalidInput, LockstepError
from app.runs.errors import RunnerOffline
from app.site_switches import Switch
from app.web.access import Access
from app.web.dependencies import DATABASE, RUNNER, DatabaseDep, RunnerDep
from app.web.forms import read_form
from app.web.languages import LANGUAGE_PREFIX
from app.web.maintenance import SWITCHES, SwitchesDep

router = APIRouter(prefix=f"{LANGUAGE_PREFIX}/admin/live", tags=[Access.admin])


class RunnerAction(StrEnum):
    """What an admin does with the runner."""

    drain = "drain"
    undrain = "undrain"
    stop = "stop"


_DONE = {
    RunnerAction.drain: "drained",
    RunnerAction.undrain: "undrained",
    RunnerAction.stop: "session_stopped",
}
"""The flash message of each."""


@router.get("", name="admin_live")
async def show_live(request: Request, lang: str, account: RequiredAdmin) -> HTMLResponse:
    return await _live_page(request)


@router.post("", name="admin_change_live")
async def change_live(
    request: Request, lang: str, account: RequiredAdmin, db: DatabaseDep, runner: RunnerDep, switches: SwitchesDep
) -> Response:
    form = await read_form(request)
    try:
        verb = RunnerAction(form.get("verb", ""))
    except ValueError as e:
        raise InvalidInput(reason="verb") from e
    actor = Actor.of(account)
    try:
        if verb is RunnerAction.stop:
            stopped = await find_session(db, runner, form.get("session", ""))
            owner = stopped.owner.account_id if stopped.owner else None
            async with db.writing() as session:  # first: a session that ended without an entry would be the worse
                action, machine = AuditAction.session_stopped, stopped.session.topology
                await record_action(session, actor, action, account_id=owner, detail=machine)
                await stop_session(runner, stopped.session.id)
        else:
            async with db.writing() as session:
                await turn_switch(session, actor, Switch.drain, on=verb is RunnerAction.drain)
            await switches.refresh(db)
    except (SessionOver, RunnerOffline) as e:
        return await _live_page(request, e)
    return redirect_to_page(request, _DONE[verb], "admin_live")


async def _live_page(request: Request, failure: LockstepError | None = None) -> HTMLResponse:
    runner = await load_runner(DATABASE.get(request.app), RUNNER.get(request.app))
    drained = SWITCHES.get(request.app).since(Switch.drain)
    return admin_page(request, "admin/live.html", None, failure, runner=runner, drained=drained)
