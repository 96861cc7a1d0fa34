"""Changing a group: its name and days, links to join it, deadlines, staff, and its end. For its instructors.

``groups/settings.html`` gets ``fields``: what the form shows, ``was``: what is stored, ``invitations``
(GroupInvitation), ``link``: the URL of a link that was just made, or empty, ``lifetimes``, ``deadlines``
(GroupDeadline), ``outline``, ``people``: pairs of GroupMember and Account, ``time_zones``, ``lesson_title`` and
``cell_title``. Also ``deadline_choice``: see ``service``, and ``deadline``: what was sent of a deadline and refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from app.accounts.validation import timezone_choices
from app.errors import InvalidInput, LockstepError
from app.groups import members, service
from app.groups.dependencies import GroupViewerDep, ReminderMailerDep
from app.groups.errors import DeadlineChanged, GroupChanged, LastInstructor, NotAnInstructorHere
from app.groups.member_routes import GroupId, course_title
from app.groups.models import GroupMember, GroupRole
from app.groups.permissions import GroupViewer, find_instructor
from app.groups.responses import redirect_after, redirect_to_page, redirect_to_removed, staff_page
from app.groups.reviews import count_waiting_of
from app.groups.routes import learner_page
from app.i18n import N_
from app.lessons.catalog import CatalogView
from app.lessons.dependencies import CatalogDep
from app.web.access import Access
from app.web.dependencies import DATABASE, DatabaseDep, site_origin
from app.web.forms import FormFields, count_field, read_form
from app.web.languages import LANGUAGE_PREFIX
from app.web.user_text import redisplayed_text

router = APIRouter(prefix=f"{LANGUAGE_PREFIX}/groups/{{group_id}}/settings", tags=[Access.account])


class NameMismatch(InvalidInput):
    message = N_("To delete the group, type its name as it is.")


@router.get("", name="group_settings")
async def show_settings(
    request: Request, lang: str, group_id: GroupId, viewer: GroupViewerDep, catalog: CatalogDep
) -> HTMLResponse:
    return await _settings_page(request, viewer, group_id, catalog)


@router.post("", name="change_group")
async def change(
    request: Request,
    lang: str,
    group_id: GroupId,
    viewer: GroupViewerDep,
    fields: FormFields,
    db: DatabaseDep,
    catalog: CatalogDep,
) -> Response:
    try:
        async with db.writing() as session:
            await service.change_group(session, await find_instructor(session, viewer, group_id), fields)
    except (InvalidInput, GroupChanged) as e:
        return await _settings_page(request, viewer, group_id, catalog, e, fields=fields)
    return redirect_after(request, "saved", "group_settings", group_id=group_id)


@router.get("/invitations", name="create_group_invitation_again")
@router.get("/invitations/revoke", name="revoke_group_invitation_again")
@router.get("/deadlines", name="set_group_deadline_again")
@router.get("/delete", name="delete_group_again")
async def show_settings_again(
    request: Request, lang: str, group_id: GroupId, viewer: GroupViewerDep
) -> RedirectResponse:
    return redirect_to_page(request, "group_settings", group_id=group_id)


@router.post("/invitations", name="create_group_invitation")
async def create_invitation(
    request: Request, lang: str, group_id: GroupId, viewer: GroupViewerDep, db: DatabaseDep, catalog: CatalogDep
) -> Response:
    days = count_field(await read_form(request), "days")
    try:
        async with db.writing() as session:
            staff = await find_instructor(session, viewer, group_id)
            token = await members.create_invitation(session, staff, days)
    except InvalidInput as e:
        return await _settings_page(request, viewer, group_id, catalog, e)
    link = f"{site_origin(request)}{request.app.url_path_for('join_group_page', lang=lang, token=token)}"
    return await _settings_page(request, viewer, group_id, catalog, link=link)


@router.post("/invitations/revoke", name="revoke_group_invitation")
async def revoke_invitation(
    request: Request, lang: str, group_id: GroupId, viewer: GroupViewerDep, db: DatabaseDep
) -> Response:
    form = await read_form(request)
    async with db.writing() as session:
        staff = await find_instructor(session, viewer, group_id)
        await members.revoke_invitation(session, staff, form.get("invitation", ""))
    return redirect_after(request, "link_revoked", "group_settings", group_id=group_id)


@router.post("/deadlines", name="set_group_deadline")
async def set_deadline(
    request: Request, lang: str, group_id: GroupId, viewer: GroupViewerDep, db: DatabaseDep, catalog: CatalogDep
) -> Response:
    form = await read_form(request)
    try:
        async with db.writing() as session:
            staff = await find_instructor(session, viewer, group_id)
            await service.set_deadline(session, staff, catalog, form.get("what", ""), form.get("day", ""))
    except (InvalidInput, DeadlineChanged) as e:
        return await _settings_page(request, viewer, group_id, catalog, e, deadline=form)
    return redirect_after(request, "saved", "group_settings", "#deadlines", group_id=group_id)


@router.get("/members/{account_id}", name="change_group_member_again")
async def show_member_again(
    request: Request, lang: str, group_id: GroupId, account_id: GroupId, viewer: GroupViewerDep, db: DatabaseDep
) -> RedirectResponse:
    """Redirect to where the member's role is changed."""
    async with db.session() as session:
        staff = await find_instructor(session, viewer, group_id)
        member, _ = await members.find_member(session, staff.group, account_id)
    if member.role == GroupRole.learner:
        return redirect_to_page(request, "group_learner", group_id=group_id, account_id=account_id)
    return redirect_to_page(request, "group_settings", "#staff", group_id=group_id)


@router.post("/members/{account_id}", name="change_group_member")
async def change_member(
    request: Request,
    lang: str,
    group_id: GroupId,
    account_id: GroupId,
    viewer: GroupViewerDep,
    db: DatabaseDep,
    catalog: CatalogDep,
    mailer: ReminderMailerDep,
) -> Response:
    """Give a member another role. A refusal is shown on the page with the form."""
    wanted = (await read_form(request)).get("role", "")
    if wanted not in list(GroupRole):
        raise InvalidInput(reason="role")
    try:
        async with db.writing() as session:
            staff = await find_instructor(session, viewer, group_id)
            await members.set_role(session, staff, account_id, GroupRole(wanted))
    except (LastInstructor, NotAnInstructorHere) as e:
        async with db.session() as session:
            member = await session.get(GroupMember, (group_id, account_id))
        if member is not None and member.role == GroupRole.learner:
            return await learner_page(request, viewer, group_id, account_id, catalog, e, mailer=mailer)
        return await _settings_page(request, viewer, group_id, catalog, e)
    if account_id == viewer.account.id and wanted != GroupRole.instructor:
        return redirect_after(request, "saved", "groups")
    return redirect_after(request, "saved", "group_settings", "#staff", group_id=group_id)


@router.get("/members/{account_id}/remove", name="remove_group_member_page")
async def show_removal(
    request: Request, lang: str, group_id: GroupId, account_id: GroupId, viewer: GroupViewerDep
) -> HTMLResponse:
    """What removing a member deletes."""
    return await _removal_page(request, viewer, group_id, account_id)


@router.post("/members/{account_id}/remove", name="remove_group_member")
async def remove_member(
    request: Request, lang: str, group_id: GroupId, account_id: GroupId, viewer: GroupViewerDep, db: DatabaseDep
) -> Response:
    try:
        async with db.writing() as session:
            staff = await find_instructor(session, viewer, group_id)
            await members.remove_member(session, staff, account_id)
    except LastInstructor as e:
        return await _removal_page(request, viewer, group_id, account_id, e)
    if account_id == viewer.account.id:
        return redirect_after(request, "group_left", "groups")
    return redirect_to_removed(request, group_id, account_id)


@router.post("/delete", name="delete_group")
async def delete(
    request: Request, lang: str, group_id: GroupId, viewer: GroupViewerDep, db: DatabaseDep, catalog: CatalogDep
) -> Response:
    typed = (await read_form(request)).get("name", "")
    try:
        async with db.writing() as session:
            staff = await find_instructor(session, viewer, group_id)
            if " ".join(typed.split()) != staff.group.name:
                raise NameMismatch
            await service.delete_group(session, staff)
    except NameMismatch as e:
        return await _settings_page(request, viewer, group_id, catalog, e)
    return redirect_after(request, "group_deleted", "groups")


async def _removal_page(
    request: Request, viewer: GroupViewer, group_id: str, account_id: str, failure: LockstepError | None = None
) -> HTMLResponse:
    async with DATABASE.get(request.app).session() as session:
        staff = await find_instructor(session, viewer, group_id)
        member, person = await members.find_member(session, staff.group, account_id)
        waiting = await count_waiting_of(session, staff.group, account_id)
    parts = {"lang": request.path_params["lang"], "group_id": group_id}
    stay = request.app.url_path_for("group_settings", **parts)
    if member.role == GroupRole.learner:
        stay = request.app.url_path_for("group_learner", **parts, account_id=account_id)
    facts = {"person": person, "has_note": bool(member.note), "waiting": waiting, "stay": stay}
    return staff_page(request, "groups/leave.html", staff, failure, **facts)


async def _settings_page(
    request: Request,
    viewer: GroupViewer,
    group_id: str,
    catalog: CatalogView,
    failure: LockstepError | None = None,
    *,
    link: str = "",
    fields: Mapping[str, str] | None = None,
    deadline: Mapping[str, str] | None = None,
) -> HTMLResponse:
    lang = request.path_params["lang"]
    async with DATABASE.get(request.app).session() as session:
        staff = await find_instructor(session, viewer, group_id)
        group = staff.group
        facts: dict[str, Any] = {
            "invitations": await members.list_invitations(session, group),
            "deadlines": await service.list_deadlines(session, group),
            "people": await members.list_staff(session, group),
        }
    stored = service.group_form(group)
    shown = dict(stored)
    if fields is not None:
        shown |= {name: redisplayed_text(text) for name, text in fields.items() if text != fields.get(f"was_{name}")}
    facts |= {
        "fields": shown,
        "was": stored,
        "link": link,
        "lifetimes": members.LIFETIMES_DAYS,
        "time_zones": timezone_choices(group.time_zone),
    }
    zone = service.group_zone(group)
    days = {(due.lesson, due.exercise): service.day_before(due.due_at, zone).isoformat() for due in facts["deadlines"]}
    facts["deadline_choice"] = lambda lesson, exercise="": service.deadline_choice(
        lesson, exercise, days.get((lesson, exercise), "")
    )
    facts["deadline"] = deadline or {}
    facts |= {"course": course_title(catalog, group, lang), "roles": list(GroupRole)}
    facts["outline"] = catalog.find_outline(group.course, lang)
    facts["lesson_title"] = lambda key: catalog.lesson_title(key, lang)
    facts["cell_title"] = lambda key, cell: catalog.cell_title(key, cell, lang)
    return staff_page(request, "groups/settings.html", staff, failure, **facts)
