"""The admin pages of accounts: the list, and one account with what can be done to it.

Contexts of the templates:

``admin/people.html``
    ``narrowed`` (PeopleFilter), ``people`` (Account), ``state_of``, ``roles``, ``states``, ``next_url``.
``admin/person.html``
    ``person`` (Account), ``state``, ``roles``, ``sign_ins`` (AuthSession), ``describe_browser``, ``entries`` (AuditRow)
    and ``admin_page``'s ``admin`` (Account), ``logged_in_recently``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from app.accounts.auth_sessions import list_auth_sessions
from app.accounts.dependencies import AccountMailerDep, RequiredAdmin, RequiredSignIn, SignedIn
from app.accounts.models import Account, Role
from app.accounts.routes import InvalidFields
from app.accounts.user_agent import describe_browser
from app.admin import people
from app.admin.audit import Actor, AuditFilter, list_entries
from app.admin.people import MAX_SEARCH_LENGTH, AccountState, AlreadyConfirmed, LastAdmin, PeopleFilter
from app.admin.responses import admin_page, confirm_identity, lock_actor, redirect_to_page
from app.errors import InvalidInput, LockstepError
from app.rate_limit import TooManyAttempts
from app.web.access import Access
from app.web.dependencies import DATABASE, DatabaseDep
from app.web.forms import read_form
from app.web.languages import LANGUAGE_PREFIX
from app.web.pagination import BeforeCursor

router = APIRouter(prefix=f"{LANGUAGE_PREFIX}/admin/people", tags=[Access.admin])

_SHOWN_ENTRIES = 10

Search = Annotated[str, Query(max_length=MAX_SEARCH_LENGTH, pattern="^[^\x00]*$")]


class PersonAction(StrEnum):
    """A sensitive change of an account."""

    role = "role"
    disable = "disable"
    enable = "enable"
    end_sessions = "end_sessions"


_DONE = {
    PersonAction.role: "role_changed",
    PersonAction.disable: "account_disabled",
    PersonAction.enable: "account_enabled",
    PersonAction.end_sessions: "auth_sessions_ended",
}
"""The flash message of each."""


@router.get("", name="admin_people")
async def show_people(
    request: Request,
    lang: str,
    account: RequiredAdmin,
    db: DatabaseDep,
    search: Search = "",
    role: str = "",
    state: str = "",
    before: BeforeCursor = None,
) -> HTMLResponse:
    narrowed = PeopleFilter(
        search.strip(),
        Role(role) if role in list(Role) else None,
        AccountState(state) if state in list(AccountState) else None,
    )
    async with db.session() as session:
        found, next_before = await people.list_people(session, narrowed, before)
    query = {"search": narrowed.search, "role": narrowed.role or "", "state": narrowed.state or ""}
    address = request.app.url_path_for("admin_people", lang=lang)
    return admin_page(
        request,
        "admin/people.html",
        None,
        narrowed=narrowed,
        people=found,
        state_of=people.state_of,
        roles=list(Role),
        states=list(AccountState),
        paged=before is not None,
        next_url=next_before and f"{address}?{urlencode(query | {'before': next_before})}",
    )


@router.get("/{account_id}", name="admin_person")
async def show_person(
    request: Request, lang: str, account_id: str, account: RequiredAdmin, signed_in: RequiredSignIn
) -> HTMLResponse:
    return await _person_page(request, signed_in, account_id)


@router.post("/{account_id}", name="admin_change_person")
async def change_person(
    request: Request, lang: str, account_id: str, account: RequiredAdmin, signed_in: RequiredSignIn, db: DatabaseDep
) -> Response:
    form = await read_form(request)
    try:
        verb, role = PersonAction(form.get("verb", "")), Role(form.get("role", Role.learner))
    except ValueError as e:
        raise InvalidInput(reason="verb") from e
    try:
        await confirm_identity(request, signed_in, form)
        async with db.writing() as session:
            actor = await lock_actor(request, session)
            await _change(session, actor, await people.get_person(session, account_id), verb, role)
    except (InvalidFields, TooManyAttempts, LastAdmin) as e:
        return await _person_page(request, signed_in, account_id, e)
    return redirect_to_page(request, _DONE[verb], "admin_person", account_id=account_id)


@router.post("/{account_id}/confirmation", name="admin_resend_confirmation")
async def resend_confirmation(
    request: Request,
    lang: str,
    account_id: str,
    account: RequiredAdmin,
    signed_in: RequiredSignIn,
    db: DatabaseDep,
    mailer: AccountMailerDep,
) -> Response:
    try:
        async with db.writing() as session:
            person = await people.get_person(session, account_id)
            await people.resend_confirmation(session, Actor.of(account), person, mailer)
    except AlreadyConfirmed as e:
        return await _person_page(request, signed_in, account_id, e)
    return redirect_to_page(request, "confirmation_sent", "admin_person", account_id=account_id)


async def _change(session: AsyncSession, actor: Actor, person: Account, verb: PersonAction, role: Role) -> None:
    match verb:
        case PersonAction.role:
            await people.set_role(session, actor, person, role)
        case PersonAction.disable:
            await people.disable_account(session, actor, person)
        case PersonAction.enable:
            await people.enable_account(session, actor, person)
        case PersonAction.end_sessions:
            await people.end_auth_sessions(session, actor, person)


async def _person_page(
    request: Request, signed_in: SignedIn, account_id: str, failure: LockstepError | None = None
) -> HTMLResponse:
    async with DATABASE.get(request.app).session() as session:
        person = await people.get_person(session, account_id)
        sign_ins = await list_auth_sessions(session, person)
        entries, _ = await list_entries(session, AuditFilter(person=person.id), most=_SHOWN_ENTRIES)
    facts = {"person": person, "state": people.state_of(person), "roles": list(Role), "entries": entries}
    facts |= {"sign_ins": sign_ins, "describe_browser": describe_browser}
    return admin_page(request, "admin/person.html", signed_in, failure, **facts)
