"""The pages of a group for its staff: reports, learners, and details of cells. Everyone else finds nothing here.

Contexts of the templates, beside ``group``, ``zone``, ``last_day`` and ``staff``:

``groups/report.html``
    ``table`` (ReportTable), ``period``, ``periods``, ``learners`` and ``active``: how many.
``groups/learners.html``
    ``found`` (LearnerPage), ``search``, ``only_stuck``, ``order`` (LearnerOrder), ``reverse``, ``page``,
    ``lesson_page``, ``total``: lessons of the course, ``removed``: the name of the person just removed, or empty,
    ``reachable``: the accounts to which a reminder can be sent, ``message``: the text that was typed for it.
``groups/cell.html``
    ``details`` (CellDetails), ``stuck`` (ReportTable) for an exercise, ``title``, ``lesson``, ``cell``, ``period``,
    ``periods``, ``back``: the report above it.
``groups/stopped.html``
    ``table`` (ReportTable), ``title``, ``lesson``, ``period``, ``periods``, ``back``.
``groups/learner.html``
    See ``member_routes``; also ``no_reminder``: why none can be sent, ``note``: the text to show in the form,
    ``note_version``: of the note that is stored.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse

from app.db import now
from app.errors import LockstepError, NotFound
from app.groups import members
from app.groups.cell_details import DETAILS, CellDetails
from app.groups.dependencies import GroupViewerDep, ReminderMailerDep
from app.groups.learner_lists import list_stopped, list_stuck
from app.groups.learners import (
    MAX_SEARCH_LENGTH,
    PAGE_SIZE,
    LearnerOrder,
    LearnerPage,
    export_learners,
    list_learners,
    report_learner,
)
from app.groups.member_routes import GroupId, learner_context
from app.groups.models import Group, GroupRole
from app.groups.permissions import GroupViewer, Staff, find_own_membership, find_staff
from app.groups.reminders import ReminderMailer
from app.groups.report_table import (
    DEFAULT_PERIOD,
    PERIODS,
    ReportLink,
    ReportTable,
    Reversed,
    SortColumn,
    report_window,
)
from app.groups.reports import REPORTS, ReportScope, count_learners
from app.groups.responses import find_removed, redirect_after, redirect_to_page, staff_page
from app.groups.reviews import export_reviews
from app.groups.service import group_zone
from app.i18n import current_language
from app.lessons.catalog import CatalogView
from app.lessons.dependencies import CatalogDep
from app.lessons.model import Lesson
from app.web.access import Access
from app.web.csv_table import BYTE_ORDER_MARK, to_csv
from app.web.dependencies import DATABASE, DatabaseDep, site_origin
from app.web.forms import FormFields
from app.web.languages import LANGUAGE_PREFIX
from app.web.security_headers import NO_STORE
from app.web.user_text import redisplayed_text

router = APIRouter(prefix=f"{LANGUAGE_PREFIX}/groups/{{group_id}}", tags=[Access.account])

_NO_NUL = "^[^\x00]*$"
Period = Annotated[str, Query(max_length=8, alias="period")]
Key = Annotated[str, Query(max_length=200, pattern=_NO_NUL)]
CellName = Annotated[str, Query(max_length=100, pattern=_NO_NUL)]
_ABOVE = {"errors": "errors", "limits": "limits", "wrong-answers": "exercises"}
"""The report that leads to the details of a cell."""


class LearnerQuery(BaseModel):
    """What the table of learners shows."""

    search: str = Field("", max_length=MAX_SEARCH_LENGTH, pattern=_NO_NUL)
    stuck: bool = False
    sort: LearnerOrder = LearnerOrder.name
    reverse: bool = False
    page: int = Field(0, ge=0, le=10_000)
    lessons: int = Field(0, ge=0, le=10_000)
    removed: str = Field("", max_length=128, pattern=_NO_NUL)


class ReportNotFound(NotFound):
    """The address of no report."""


@router.get("", name="group")
async def show_group(
    request: Request, lang: str, group_id: GroupId, viewer: GroupViewerDep, db: DatabaseDep
) -> RedirectResponse:
    """Redirect the staff to the reports, and a learner to their own page."""
    async with db.session() as session:
        _, member = await _membership_or_staff(session, viewer, group_id)
    route, parts = ("own_group", {}) if member == GroupRole.learner else ("group_report", {"report": "lessons"})
    return RedirectResponse(request.app.url_path_for(route, lang=lang, group_id=group_id, **parts), 303, NO_STORE)


@router.get("/reports/{report}.csv", name="group_report_csv")
async def download_report(
    request: Request,
    lang: str,
    group_id: GroupId,
    report: str,
    viewer: GroupViewerDep,
    db: DatabaseDep,
    catalog: CatalogDep,
    period: Period = DEFAULT_PERIOD,
) -> Response:
    async with db.session() as session:
        staff = await find_staff(session, viewer, group_id)
        table = await _report(report, _scope(session, staff, catalog, lang, period))
    return _csv_response(request, staff.group, table, period)


@router.get("/reports/{report}", name="group_report")
async def show_report(
    request: Request,
    lang: str,
    group_id: GroupId,
    report: str,
    viewer: GroupViewerDep,
    db: DatabaseDep,
    catalog: CatalogDep,
    period: Period = DEFAULT_PERIOD,
    sort: SortColumn = None,
    reverse: Reversed = False,
) -> HTMLResponse:
    async with db.session() as session:
        staff = await find_staff(session, viewer, group_id)
        scope = _scope(session, staff, catalog, lang, period)
        table = (await _report(report, scope)).sorted_by(sort, reverse=reverse)
        learners, active = await count_learners(scope)
    facts = {"table": table, "learners": learners, "active": active, **_period(period)}
    return staff_page(request, "groups/report.html", staff, None, **facts)


@router.get("/cells/{what}.csv", name="group_cell_csv")
async def download_cell(
    request: Request,
    lang: str,
    group_id: GroupId,
    what: str,
    viewer: GroupViewerDep,
    db: DatabaseDep,
    catalog: CatalogDep,
    lesson: Key = "",
    cell: CellName = "",
    period: Period = DEFAULT_PERIOD,
) -> Response:
    async with db.session() as session:
        staff = await find_staff(session, viewer, group_id)
        scope = _cell_scope(session, staff, catalog, lang, period, lesson, cell)
        table = (await _details(what, scope, lesson, cell)).table
    return _csv_response(request, staff.group, table, period)


@router.get("/cells/{what}", name="group_cell")
async def show_cell(
    request: Request,
    lang: str,
    group_id: GroupId,
    what: str,
    viewer: GroupViewerDep,
    db: DatabaseDep,
    catalog: CatalogDep,
    lesson: Key = "",
    cell: CellName = "",
    period: Period = DEFAULT_PERIOD,
) -> HTMLResponse:
    """The errors of a cell, its runs that met a limit, or the wrong answers to an exercise."""
    async with db.session() as session:
        staff = await find_staff(session, viewer, group_id)
        scope = _cell_scope(session, staff, catalog, lang, period, lesson, cell)
        details = await _details(what, scope, lesson, cell)
        stuck = await list_stuck(scope, lesson, cell) if what == "wrong-answers" else None
    titles = {"title": scope.cell_title(lesson, cell), "lesson_name": scope.lesson_title(lesson).text}
    facts = {"details": details, "stuck": stuck, "lesson": lesson, "cell": cell, "back": _ABOVE[what]}
    return staff_page(request, "groups/cell.html", staff, None, **facts, **titles, **_period(period))


@router.get("/stopped", name="group_stopped")
async def show_stopped(
    request: Request,
    lang: str,
    group_id: GroupId,
    viewer: GroupViewerDep,
    db: DatabaseDep,
    catalog: CatalogDep,
    lesson: Key = "",
    period: Period = DEFAULT_PERIOD,
    sort: SortColumn = None,
    reverse: Reversed = False,
) -> HTMLResponse:
    """The learners who stopped in a lesson."""
    async with db.session() as session:
        staff = await find_staff(session, viewer, group_id)
        _find_lesson(staff, catalog, lang, lesson)
        table = await list_stopped(_scope(session, staff, catalog, lang, period), lesson)
    table = table.sorted_by(sort, reverse=reverse)
    facts = {"table": table, "title": catalog.lesson_title(lesson, lang), "lesson": lesson, "back": "lessons"}
    return staff_page(request, "groups/stopped.html", staff, None, **facts, **_period(period))


@router.get("/learners.csv", name="group_learners_csv")
async def download_learners(
    request: Request, lang: str, group_id: GroupId, viewer: GroupViewerDep, db: DatabaseDep, catalog: CatalogDep
) -> StreamingResponse:
    async with db.session() as session:
        staff = await find_staff(session, viewer, group_id)
        lessons = _scope(session, staff, catalog, lang, "all").lessons()
    rows = export_learners(db, staff.group, lambda session: _scope(session, staff, catalog, lang, "all"), lessons)
    return _csv_stream(staff.group, "learners", rows)


@router.get("/reviews.csv", name="group_reviews_csv")
async def download_reviews(
    request: Request, lang: str, group_id: GroupId, viewer: GroupViewerDep, db: DatabaseDep, catalog: CatalogDep
) -> StreamingResponse:
    async with db.session() as session:
        staff = await find_staff(session, viewer, group_id)
    address = _addresses(request)

    def of_review(review_id: str) -> str:
        return address(ReportLink("group_review", {"group_id": group_id, "review_id": review_id}))

    return _csv_stream(staff.group, "reviews", export_reviews(db, staff.group, catalog, lang, of_review))


@router.get("/learners", name="group_learners")
async def show_learners(
    request: Request,
    lang: str,
    group_id: GroupId,
    viewer: GroupViewerDep,
    catalog: CatalogDep,
    mailer: ReminderMailerDep,
    query: Annotated[LearnerQuery, Query()],
) -> HTMLResponse:
    return await learners_page(request, viewer, group_id, catalog, query, mailer=mailer)


@router.get("/learners/reminders", name="send_group_reminders_again")
async def show_learners_again(
    request: Request, lang: str, group_id: GroupId, viewer: GroupViewerDep
) -> RedirectResponse:
    return redirect_to_page(request, "group_learners", group_id=group_id)


@router.post("/learners/reminders", name="send_group_reminders")
async def send_reminders(
    request: Request,
    lang: str,
    group_id: GroupId,
    viewer: GroupViewerDep,
    fields: FormFields,
    db: DatabaseDep,
    catalog: CatalogDep,
    mailer: ReminderMailerDep,
    query: Annotated[LearnerQuery, Query()],
) -> Response:
    """Send a reminder to the learners in the field ``learners``, whom a page of the table has shown."""
    text = fields.get("message", "")
    learners = list(dict.fromkeys(fields.get("learners", "").split()))[:PAGE_SIZE]
    try:
        async with db.writing() as session:
            staff = await find_staff(session, viewer, group_id)
            to_all = await mailer.send_to_several(session, staff, learners, text)
    except LockstepError as e:
        return await learners_page(request, viewer, group_id, catalog, query, e, mailer=mailer, message=text)
    what = "reminders_sent" if to_all else "some_reminders_sent"
    return redirect_after(request, what, "group_learners", f"?{request.url.query}", group_id=group_id)


@router.get("/learners/{account_id}", name="group_learner")
async def show_learner(
    request: Request,
    lang: str,
    group_id: GroupId,
    account_id: GroupId,
    viewer: GroupViewerDep,
    catalog: CatalogDep,
    mailer: ReminderMailerDep,
) -> HTMLResponse:
    return await learner_page(request, viewer, group_id, account_id, catalog, mailer=mailer)


@router.get("/learners/{account_id}/note", name="set_group_note_again")
@router.get("/learners/{account_id}/reminder", name="send_group_reminder_again")
async def show_learner_again(
    request: Request, lang: str, group_id: GroupId, account_id: GroupId, viewer: GroupViewerDep
) -> RedirectResponse:
    return redirect_to_page(request, "group_learner", group_id=group_id, account_id=account_id)


@router.post("/learners/{account_id}/note", name="set_group_note")
async def set_note(
    request: Request,
    lang: str,
    group_id: GroupId,
    account_id: GroupId,
    viewer: GroupViewerDep,
    fields: FormFields,
    db: DatabaseDep,
    catalog: CatalogDep,
    mailer: ReminderMailerDep,
) -> Response:
    text = fields.get("note", "")
    try:
        async with db.writing() as session:
            staff = await find_staff(session, viewer, group_id)
            await members.set_note(session, staff, account_id, text, fields.get("version", ""))
    except LockstepError as e:
        return await learner_page(request, viewer, group_id, account_id, catalog, e, mailer=mailer, note=text)
    return _to_learner(request, "saved", group_id, account_id)


@router.post("/learners/{account_id}/reminder", name="send_group_reminder")
async def send_reminder(
    request: Request,
    lang: str,
    group_id: GroupId,
    account_id: GroupId,
    viewer: GroupViewerDep,
    fields: FormFields,
    db: DatabaseDep,
    catalog: CatalogDep,
    mailer: ReminderMailerDep,
) -> Response:
    text = fields.get("message", "")
    try:
        async with db.writing() as session:
            staff = await find_staff(session, viewer, group_id)
            await mailer.send(session, staff, account_id, text)
    except LockstepError as e:
        return await learner_page(request, viewer, group_id, account_id, catalog, e, mailer=mailer, message=text)
    return _to_learner(request, "reminder_sent", group_id, account_id)


def _to_learner(request: Request, what: str, group_id: str, account_id: str) -> RedirectResponse:
    return redirect_after(request, what, "group_learner", group_id=group_id, account_id=account_id)


async def learners_page(
    request: Request,
    viewer: GroupViewer,
    group_id: str,
    catalog: CatalogView,
    query: LearnerQuery,
    failure: LockstepError | None = None,
    *,
    mailer: ReminderMailer,
    message: str = "",
) -> HTMLResponse:
    """The table of learners, with the reason if a reminder was refused."""
    lang = request.path_params["lang"]
    async with DATABASE.get(request.app).session() as session:
        staff = await find_staff(session, viewer, group_id)
        removed_name = await find_removed(request, session, group_id, query.removed)
        scope = _scope(session, staff, catalog, lang, "all")
        found: LearnerPage = await list_learners(
            scope,
            query.search,
            query.page,
            query.lessons,
            only_stuck=query.stuck,
            order=query.sort,
            reverse=query.reverse,
        )
    reachable = [row.account.id for row in found.rows if mailer.find_refusal(row.member, row.account) is None]
    facts: dict[str, object] = {"removed": removed_name, "only_stuck": query.stuck, "order": query.sort}
    facts |= {"reverse": query.reverse, "found": found, "search": query.search, "page": query.page}
    facts |= {"lesson_page": query.lessons, "total": len(scope.lessons()), "reachable": reachable}
    return staff_page(request, "groups/learners.html", staff, failure, message=redisplayed_text(message), **facts)


async def learner_page(
    request: Request,
    viewer: GroupViewer,
    group_id: str,
    account_id: str,
    catalog: CatalogView,
    failure: LockstepError | None = None,
    *,
    mailer: ReminderMailer,
    note: str | None = None,
    message: str = "",
) -> HTMLResponse:
    """The page of a learner, also with why a form of it was refused."""
    lang = request.path_params["lang"]
    async with DATABASE.get(request.app).session() as session:
        staff = await find_staff(session, viewer, group_id)
        member, account = await members.find_learner(session, staff.group, account_id)
        report = await report_learner(_scope(session, staff, catalog, lang, "all"), account, member)
    facts = learner_context(catalog, report, staff.group, lang)
    refusal = mailer.find_refusal(member, account)
    facts["no_reminder"] = refusal.localized_message() if refusal is not None else ""
    facts["note"] = member.note if note is None else redisplayed_text(note)
    facts["note_version"] = members.note_version(member)
    facts["message"] = redisplayed_text(message)
    return staff_page(request, "groups/learner.html", staff, failure, own=False, **facts)


async def _membership_or_staff(session: AsyncSession, viewer: GroupViewer, group_id: str) -> tuple[str, str]:
    """The ID of the group and the viewer's role in it, which for an admin is that of an instructor."""
    try:
        group, member = await find_own_membership(session, viewer, group_id)
        if member.role == GroupRole.learner:
            return group.id, member.role
    except NotFound:
        pass
    return group_id, (await find_staff(session, viewer, group_id)).role


def _scope(session: AsyncSession, staff: Staff, catalog: CatalogView, lang: str, period: str) -> ReportScope:
    at = now()
    return ReportScope(session, staff.group, report_window(staff.group, period, at), catalog, lang, at)


def _cell_scope(
    session: AsyncSession, staff: Staff, catalog: CatalogView, lang: str, period: str, lesson: str, cell: str
) -> ReportScope:
    """Raises ReportNotFound if the group's course has no such cell."""
    if _find_lesson(staff, catalog, lang, lesson).cell(cell) is None:
        raise ReportNotFound
    return _scope(session, staff, catalog, lang, period)


def _find_lesson(staff: Staff, catalog: CatalogView, lang: str, key: str) -> Lesson:
    """Raises ReportNotFound if the group's course has no such lesson."""
    found = catalog.find_lesson(key, lang) if key.partition("/")[0] == staff.group.course else None
    if found is None:
        raise ReportNotFound
    return found


async def _report(name: str, scope: ReportScope) -> ReportTable:
    if name not in REPORTS:
        raise ReportNotFound
    return await REPORTS[name](scope)


async def _details(what: str, scope: ReportScope, lesson: str, cell: str) -> CellDetails:
    if what not in DETAILS:
        raise ReportNotFound
    return await DETAILS[what](scope, lesson, cell)


def _period(period: str) -> dict[str, object]:
    return {"period": period if period in PERIODS else DEFAULT_PERIOD, "periods": list(PERIODS)}


def _csv_response(request: Request, group: Group, table: ReportTable, period: str) -> Response:
    rows = table.csv_rows(group_zone(group), _addresses(request))
    back = PERIODS.get(period, PERIODS[DEFAULT_PERIOD])
    headers = _csv_headers(group, table.name, f"{back.days}-days" if back else "all")
    return Response(BYTE_ORDER_MARK + to_csv(rows), media_type="text/csv", headers=headers)


def _csv_stream(group: Group, name: str, rows: AsyncIterator[Sequence[str]]) -> StreamingResponse:
    """Stream a table as CSV."""

    async def lines() -> AsyncIterator[str]:
        yield BYTE_ORDER_MARK
        async for row in rows:
            yield to_csv([row])

    return StreamingResponse(lines(), media_type="text/csv", headers=_csv_headers(group, name))


def _addresses(request: Request) -> Callable[[ReportLink], str]:
    """Return a function that builds a link's absolute URL."""
    origin = site_origin(request)

    def address(link: ReportLink) -> str:
        path = request.app.url_path_for(link.route, lang=current_language(), **link.parts)
        return f"{origin}{path}{link.anchor}"

    return address


def _csv_headers(group: Group, *parts: str) -> dict[str, str]:
    """With the name of the file, from the group's name and these parts."""
    named = "-".join(("lockstep", *filter(None, [_slug(group.name)]), *parts))
    ascii_name = named if named.isascii() else "-".join(("lockstep", *parts))
    disposition = f"attachment; filename=\"{ascii_name}.csv\"; filename*=UTF-8''{quote(named)}.csv"
    return {**NO_STORE, "content-disposition": disposition}


def _slug(name: str) -> str:
    """The letters and digits of a name, of any language, with hyphens between words. Pure."""
    return "-".join(re.findall(r"[^\W_]+", name.lower()))
