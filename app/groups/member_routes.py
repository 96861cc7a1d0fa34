"""Groups as their members see them: the list, joining by a link, one's own page, and the end of reminders.

Contexts of the templates:

``groups/list.html``
    ``own`` (OwnGroup), ``others`` (Group, for admins), ``ended``: the IDs of those that are over, ``courses``,
    ``account``, ``may_create``, ``fields``: what was typed, ``own_zone`` and ``time_zones``: names.
``groups/join.html``
    ``group``, ``course``, ``names``: roles and names of its staff, ``token``, ``joined``.
``groups/learner.html``
    ``report`` (LearnerReport), ``own``: whether the learner looks, ``names`` if so, and what ``learner_context`` adds.
``groups/leave.html``
    ``person``: the Account to remove, or None if the viewer leaves, ``waiting``: reviews, ``stay``: the path of the
    page to go back to; of a person also ``has_note``.
``groups/deadlines.html``
    See ``page_piece.deadlines_context``.
``groups/stop_reminders.html``
    ``done``, ``parts``: the parts of the link.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from app.accounts.dependencies import RequiredAccount, RequiredInstructor
from app.accounts.models import Account, Role
from app.accounts.routes import account_page
from app.accounts.signing import SIGNER
from app.accounts.validation import timezone_choices
from app.db import Database, now
from app.errors import InvalidInput, LockstepError
from app.groups import members, service
from app.groups.dependencies import GroupViewerDep
from app.groups.learners import LearnerReport, report_learner
from app.groups.models import Group, GroupMember, GroupRole
from app.groups.page_piece import deadlines_context
from app.groups.permissions import GroupViewer, find_own_membership
from app.groups.reminders import stop_reminders, verify_stop_link
from app.groups.report_table import report_window
from app.groups.reports import ReportScope
from app.groups.responses import group_page, redirect_after
from app.groups.reviews import count_waiting_of
from app.lessons.catalog import CatalogView
from app.lessons.dependencies import CatalogDep, WholeCatalogDep
from app.progress.timezones import learner_timezone
from app.web.access import Access
from app.web.dependencies import DatabaseDep
from app.web.forms import FormFields, read_form
from app.web.languages import LANGUAGE_PREFIX
from app.web.rendering import render_fragment, render_private_page
from app.web.user_text import redisplayed_text

router = APIRouter(prefix=f"{LANGUAGE_PREFIX}/groups")

GroupId = Annotated[str, Path(max_length=64)]
Slug = Annotated[str, Query(max_length=80)]
JoinToken = Annotated[str, Path(max_length=200)]
CSRF_EXEMPT_PATHS = r"/\w+/groups/reminders/[^/]+/[^/]+/[^/]+"
"""Mail programs post to these with one click. Their signature says who asks."""
_MOST_OTHERS = 200


@router.get("", name="groups", tags=[Access.account])
async def show_groups(
    request: Request, lang: str, viewer: GroupViewerDep, db: DatabaseDep, catalog: CatalogDep
) -> HTMLResponse:
    return await _list_page(request, viewer.account, db, catalog)


@router.post("", name="create_group", tags=[Access.instructor])
async def create_group(
    request: Request,
    lang: str,
    account: RequiredInstructor,
    fields: FormFields,
    db: DatabaseDep,
    catalog: CatalogDep,
) -> Response:
    try:
        async with db.writing() as session:
            made = (await service.create_group(session, account, catalog, fields)).id
    except InvalidInput as e:
        return await _list_page(request, account, db, catalog, e, fields)
    return redirect_after(request, "group_created", "group_settings", group_id=made)


@router.get("/deadlines", name="deadlines", tags=[Access.account])
async def show_deadlines(
    request: Request,
    lang: str,
    account: RequiredAccount,
    db: DatabaseDep,
    catalog: WholeCatalogDep,
    course: Slug = "",
    lesson: Slug = "",
) -> HTMLResponse:
    """Those on a course's or a lesson's page again, after progress."""
    async with db.session() as session:
        context = await deadlines_context(session, account, catalog, course, lesson)
    return render_fragment(request, "groups/deadlines.html", **context)


@router.get("/join/{token}", name="join_group_page", tags=[Access.account])
async def show_invitation(
    request: Request, lang: str, token: JoinToken, account: RequiredAccount, db: DatabaseDep, catalog: CatalogDep
) -> HTMLResponse:
    async with db.session() as session:
        group = await members.find_invited_group(session, token)
        staff = await members.list_staff(session, group)
        joined = await session.get(GroupMember, (group.id, account.id)) is not None
    names = [(member.role, person.name) for member, person in staff]
    facts = {"course": course_title(catalog, group, lang), "names": names, "token": token, "joined": joined}
    return group_page(request, "groups/join.html", group, **facts)


@router.post("/join/{token}", name="join_group", tags=[Access.account])
async def join_group(
    request: Request, lang: str, token: JoinToken, account: RequiredAccount, db: DatabaseDep
) -> Response:
    form = await read_form(request)
    async with db.writing() as session:
        agreed = {"shares_code": form.get("code") == "yes", "reminders": form.get("reminders") == "yes"}
        group = (await members.join(session, account, token, **agreed)).id
    return redirect_after(request, "group_joined", "group", group_id=group)


@router.get("/reminders/{group_id}/{account_id}/{token}", name="stop_reminders_page", tags=[Access.public])
async def show_stop_reminders(request: Request, lang: str, group_id: str, account_id: str, token: str) -> HTMLResponse:
    return _stop_page(request, group_id, account_id, token, done=False)


@router.post("/reminders/{group_id}/{account_id}/{token}", name="stop_reminders", tags=[Access.public])
async def stop(
    request: Request, lang: str, group_id: str, account_id: str, token: str, db: DatabaseDep
) -> HTMLResponse:
    """Used by the page's button and by mail programs; needs no sign-in."""
    verify_stop_link(SIGNER.get(request.app), group_id, account_id, token)
    async with db.writing() as session:
        await stop_reminders(session, group_id, account_id)
    return _stop_page(request, group_id, account_id, token, done=True)


@router.get("/{group_id}/me", name="own_group", tags=[Access.account])
async def show_own_page(
    request: Request, lang: str, group_id: GroupId, viewer: GroupViewerDep, db: DatabaseDep, catalog: CatalogDep
) -> HTMLResponse:
    """What the staff of the group sees of the viewer."""
    return await _own_page(request, viewer, group_id, db, catalog, lang)


@router.post("/{group_id}/me", name="change_own_group", tags=[Access.account])
async def change_choices(
    request: Request, lang: str, group_id: GroupId, viewer: GroupViewerDep, db: DatabaseDep
) -> Response:
    form = await read_form(request)
    async with db.writing() as session:
        _, member = await find_own_membership(session, viewer, group_id)
        agreed = {"shares_code": form.get("code") == "yes", "reminders": form.get("reminders") == "yes"}
        await members.set_choices(session, member, **agreed)
    return redirect_after(request, "saved", "own_group", group_id=group_id)


@router.get("/{group_id}/leave", name="leave_group_page", tags=[Access.account])
async def show_leaving(
    request: Request, lang: str, group_id: GroupId, viewer: GroupViewerDep, db: DatabaseDep
) -> HTMLResponse:
    """What leaving deletes."""
    async with db.session() as session:
        group, _ = await find_own_membership(session, viewer, group_id)
        waiting = await count_waiting_of(session, group, viewer.account.id)
    facts = {"person": None, "waiting": waiting, "stay": request.app.url_path_for("groups", lang=lang)}
    return group_page(request, "groups/leave.html", group, staff=None, **facts)


@router.post("/{group_id}/leave", name="leave_group", tags=[Access.account])
async def leave_group(
    request: Request, lang: str, group_id: GroupId, viewer: GroupViewerDep, db: DatabaseDep, catalog: CatalogDep
) -> Response:
    async with db.writing() as session:
        _, member = await find_own_membership(session, viewer, group_id)
        await members.leave(session, member)
    return redirect_after(request, "group_left", "groups")


def course_title(catalog: CatalogView, group: Group, lang: str) -> str:
    """The title of a group's course, or its slug if it is no longer served."""
    outline = catalog.find_outline(group.course, lang)
    return outline.course.title if outline is not None else group.course


def learner_context(catalog: CatalogView, report: LearnerReport, group: Group, lang: str) -> dict[str, object]:
    """What ``groups/learner.html`` needs for everyone who looks."""
    return {
        "report": report,
        "course": course_title(catalog, group, lang),
        "lesson_title": lambda key: catalog.lesson_title(key, lang),
        "cell_title": lambda key, cell: catalog.cell_title(key, cell, lang),
    }


async def _own_page(
    request: Request, viewer: GroupViewer, group_id: str, db: Database, catalog: CatalogView, lang: str
) -> HTMLResponse:
    async with db.session() as session:
        group, member = await find_own_membership(session, viewer, group_id)
        scope = ReportScope(session, group, report_window(group, "all", now()), catalog, lang, now())
        report = await report_learner(scope, viewer.account, member)
        names = [(one.role, person.name) for one, person in await members.list_staff(session, group)]
    facts = learner_context(catalog, report, group, lang) | {"names": names}
    return group_page(request, "groups/learner.html", group, own=True, staff=None, **facts)


async def _list_page(
    request: Request,
    account: Account,
    db: Database,
    catalog: CatalogView,
    failure: LockstepError | None = None,
    fields: dict[str, str] | None = None,
) -> HTMLResponse:
    async with db.session() as session:
        own = await service.list_own_groups(session, account)
        is_admin = account.role == Role.admin
        others = await service.list_other_groups(session, account, _MOST_OTHERS) if is_admin else []
        own_zone = (await learner_timezone(session, account.learner_id)).key
    courses = catalog.courses(request.path_params["lang"])
    facts = {"account": account, "own": own, "others": others, "courses": courses, "GroupRole": GroupRole}
    facts |= {"own_zone": own_zone, "time_zones": timezone_choices(own_zone)}
    moment = now()
    facts["ended"] = {
        group.id for group in (*(each.group for each in own), *others) if members.has_ended(group, moment)
    }
    facts["may_create"] = account.role != Role.learner
    facts["fields"] = {name: redisplayed_text(value) for name, value in (fields or {}).items()}
    return account_page(request, "groups/list.html", failure, **facts)


def _stop_page(request: Request, group_id: str, account_id: str, token: str, *, done: bool) -> HTMLResponse:
    verify_stop_link(SIGNER.get(request.app), group_id, account_id, token)
    parts = {"group_id": group_id, "account_id": account_id, "token": token}
    return render_private_page(request, "groups/stop_reminders.html", done=done, parts=parts)
