"""The admin page of maintenance mode. ``admin/maintenance.html`` gets ``since`` (None if it is off)."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from app.accounts.dependencies import RequiredAdmin, RequiredSignIn, SignedIn
from app.accounts.routes import InvalidFields
from app.admin.responses import admin_page, confirm_identity, lock_actor, redirect_to_page
from app.admin.switching import turn_switch
from app.errors import InvalidInput, LockstepError
from app.rate_limit import TooManyAttempts
from app.site_switches import Switch
from app.web.access import Access
from app.web.dependencies import DatabaseDep
from app.web.forms import read_form
from app.web.languages import LANGUAGE_PREFIX
from app.web.maintenance import SWITCHES, SwitchesDep

router = APIRouter(prefix=f"{LANGUAGE_PREFIX}/admin/maintenance", tags=[Access.admin])


@router.get("", name="admin_maintenance")
async def show_maintenance(
    request: Request, lang: str, account: RequiredAdmin, signed_in: RequiredSignIn
) -> HTMLResponse:
    return _maintenance_page(request, signed_in)


@router.post("", name="admin_set_maintenance")
async def set_maintenance(
    request: Request,
    lang: str,
    account: RequiredAdmin,
    signed_in: RequiredSignIn,
    db: DatabaseDep,
    switches: SwitchesDep,
) -> Response:
    form = await read_form(request)
    if (wanted := form.get("maintenance", "")) not in ("on", "off"):
        raise InvalidInput(reason="maintenance")
    try:
        await confirm_identity(request, signed_in, form)
    except (InvalidFields, TooManyAttempts) as e:
        return _maintenance_page(request, signed_in, e)
    async with db.writing() as session:
        await turn_switch(session, await lock_actor(request, session), Switch.maintenance, on=wanted == "on")
    await switches.refresh(db)
    return redirect_to_page(request, f"maintenance_{wanted}", "admin_maintenance")


def _maintenance_page(request: Request, signed_in: SignedIn, failure: LockstepError | None = None) -> HTMLResponse:
    since = SWITCHES.get(request.app).since(Switch.maintenance)
    return admin_page(request, "admin/maintenance.html", signed_in, failure, since=since)
