"""The groups whose learners an account sees, in the API: what their pages show, under the same conditions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

from fastapi import Depends, Path, Query
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.requests import Request
from starlette.responses import Response

from app.accounts.api_access import ApiCaller, api_caller
from app.accounts.api_tokens import TokenScope
from app.accounts.models import Role
from app.accounts.second_factor import is_strong
from app.db import now
from app.errors import PermissionDenied
from app.groups.learners import LearnerRow, LessonStanding, load_learners_after
from app.groups.models import GroupRole
from app.groups.permissions import GroupViewer, Staff, find_staff, staff_role
from app.groups.report_table import PERIODS, ReportTable, report_window
from app.groups.reports import REPORTS, ReportScope
from app.groups.service import OwnGroup, list_own_groups
from app.i18n import N_
from app.lessons.catalog import CatalogView
from app.lessons.dependencies import CATALOG
from app.security_log import SecurityEvent, record
from app.web.access import Access
from app.web.api import (
    DEFAULT_PAGE_SIZE,
    ApiModel,
    Cursor,
    ListPage,
    PageSize,
    api_router,
    make_page,
    problem_responses,
    read_cursor,
)
from app.web.dependencies import SETTINGS, DatabaseDep
from app.web.security_headers import NO_STORE

router = api_router(Access.token, "Groups")

_LANGUAGE = "en"
_ERRORS = problem_responses(401, 403, 404, 422, 429)
GroupIdPart = Annotated[str, Path(pattern="^[0-9a-f]{32}$")]
ReportName = Literal["lessons", "exercises", "errors", "limits", "questions"]
ReportPeriod = Annotated[Literal["7", "30", "all"], Query(description="How many days back; `all`: the whole group.")]


class TokenLacksSecondFactor(PermissionDenied):
    message = N_(
        "This site requires a second factor for this. Sign in with a passkey or an authenticator app, then create a "
        "new API token."
    )


class GroupOut(ApiModel):
    """A group whose learners the account sees."""

    id: str
    name: str
    course: str
    role: Literal["assistant", "instructor"]
    learners: int


class GroupsOut(ApiModel):
    items: list[GroupOut]


class ReportOut(ApiModel):
    """A report as a table. The first value of a row names it."""

    name: str
    title: str
    columns: list[str]
    rows: list[list[int | float | str]]


class GroupLearnerOut(ApiModel):
    """A learner, as the table of learners shows them."""

    name: str
    handle: str
    joined_at: datetime
    lessons_completed: int
    stuck: int
    """At how many exercises."""
    last_seen_at: datetime | None
    lessons: dict[str, Literal["opened", "read", "completed", "late", "overdue"]]
    """By `course/slug`: `opened`, `read`, `completed`, `late` or `overdue`. Other lessons were not opened."""


async def _viewer(request: Request, caller: Annotated[ApiCaller, api_caller(TokenScope.groups)]) -> GroupViewer:
    """Raises TokenLacksSecondFactor."""
    if SETTINGS.get(request.app).staff_second_factor and not is_strong(caller.token.method):
        record(SecurityEvent.api_token_refused, reason="lacks a second factor")
        raise TokenLacksSecondFactor
    return GroupViewer(caller.account, Role(caller.account.role), lacks_second_factor=False)


async def _catalog(request: Request, viewer: Annotated[GroupViewer, Depends(_viewer)]) -> CatalogView:
    """With drafts for instructors, as on the pages."""
    catalog = CATALOG.get(request.app)
    return catalog if viewer.role is Role.learner else catalog.with_drafts


Viewer = Annotated[GroupViewer, Depends(_viewer)]
ViewersCatalog = Annotated[CatalogView, Depends(_catalog)]


@router.get("/groups", name="api_groups", responses=problem_responses(401, 403, 429))
async def list_groups(viewer: Viewer, response: Response, db: DatabaseDep) -> GroupsOut:
    """The groups of which the account is an instructor or assistant, by name."""
    response.headers.update(NO_STORE)
    async with db.session() as session:
        found = await list_own_groups(session, viewer.account)
    return GroupsOut(items=_staffed(viewer, found))


@router.get("/groups/{group_id}/reports/{report}", name="api_group_report", responses=_ERRORS)
async def show_report(
    viewer: Viewer,
    response: Response,
    db: DatabaseDep,
    catalog: ViewersCatalog,
    group_id: GroupIdPart,
    report: ReportName,
    period: ReportPeriod = "30",
) -> ReportOut:
    """A report of a group: the table of its page."""
    response.headers.update(NO_STORE)
    async with db.session() as session:
        staff = await find_staff(session, viewer, group_id)
        table = await REPORTS[report](_scope(session, staff, catalog, period))
    return _report_out(table)


@router.get("/groups/{group_id}/learners", name="api_group_learners", responses=_ERRORS)
async def list_group_learners(
    viewer: Viewer,
    response: Response,
    db: DatabaseDep,
    catalog: ViewersCatalog,
    group_id: GroupIdPart,
    cursor: Cursor = "",
    limit: PageSize = DEFAULT_PAGE_SIZE,
) -> ListPage[GroupLearnerOut]:
    """The learners of a group, and how far each is, in no particular order."""
    response.headers.update(NO_STORE)
    (after,) = read_cursor(cursor, 1) or ("",)
    async with db.session() as session:
        staff = await find_staff(session, viewer, group_id)
        found = await load_learners_after(_scope(session, staff, catalog, "all"), after, limit + 1)
    return make_page(found, limit, _learner_out, lambda row: (row.account.id,))


def _scope(session: AsyncSession, staff: Staff, catalog: CatalogView, period: str) -> ReportScope:
    assert period in PERIODS
    at = now()
    return ReportScope(session, staff.group, report_window(staff.group, period, at), catalog, _LANGUAGE, at)


def _staffed(viewer: GroupViewer, found: Sequence[OwnGroup]) -> list[GroupOut]:
    shown = []
    for each in found:
        role = staff_role(viewer.role, each.member)
        if role is None or each.member.role == GroupRole.learner:
            continue
        name = "instructor" if role is GroupRole.instructor else "assistant"
        group = each.group
        shown.append(GroupOut(id=group.id, name=group.name, course=group.course, role=name, learners=each.learners))
    return shown


def _report_out(table: ReportTable) -> ReportOut:
    rows = [[cell.raw for cell in row] for row in table.rows]
    return ReportOut(name=table.name, title=table.title, columns=list(table.columns), rows=rows)


def _learner_out(row: LearnerRow) -> GroupLearnerOut:
    return GroupLearnerOut(
        name=row.account.name,
        handle=row.account.handle,
        joined_at=row.member.joined_at,
        lessons_completed=row.completed,
        stuck=row.stuck,
        last_seen_at=row.last_seen_at,
        lessons={lesson: state.value for lesson, state in row.states.items() if state is not LessonStanding.none},
    )
