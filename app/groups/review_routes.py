"""The reviews of a group over HTTP, for its staff: the queue, and the page of one review.

Contexts of the templates, beside ``group``, ``zone``, ``last_day``, ``staff``, ``lesson_title`` and ``cell_title``:

``groups/reviews.html``
    ``queue`` (ReviewQueue), ``waiting`` (ReportTable): what waits in it, ``lesson``: the one that is shown, or "",
    ``most``: reviews in a list; ``unsaved``: the fields that were typed for a review that is gone; ``reviewed``:
    whether the course has exercises that are reviewed.
``groups/review.html``
    ``found`` (GroupReview), ``earlier`` (GroupReviews), ``lines`` (ReviewedLine), ``results`` (CheckResult), ``titles``
    of checks by name, ``remark``: the stored one as HTML, ``seen``: IDs of the comments, ``viewer_id``: of the account,
    ``fields``: what was typed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from app import i18n
from app.db import Database
from app.errors import LockstepError
from app.exercises.errors import ReviewNotFound
from app.exercises.models import Review, ReviewState
from app.exercises.review_decisions import add_comment, decide, load_lines, remove_comment, to_markup
from app.exercises.verdicts import load_results
from app.groups.dependencies import GroupViewerDep
from app.groups.member_routes import GroupId
from app.groups.permissions import GroupViewer, Staff, find_staff
from app.groups.report_table import ReportCell, ReportLink, ReportTable, Reversed, SortColumn
from app.groups.responses import redirect_after, redirect_to_page, staff_page
from app.groups.reviews import MAX_SHOWN, ReviewQueue, find_review, list_earlier_reviews, load_queue
from app.groups.service import group_zone
from app.i18n import gettext, pgettext
from app.lessons.catalog import CatalogView
from app.lessons.dependencies import CATALOG, CatalogDep
from app.notifications.models import NotificationKind
from app.notifications.service import find_unread, mark_read
from app.progress.service import ProgressServiceDep
from app.web.access import Access
from app.web.dependencies import DatabaseDep
from app.web.forms import FormFields
from app.web.languages import LANGUAGE_PREFIX
from app.web.user_text import redisplayed_text

router = APIRouter(prefix=f"{LANGUAGE_PREFIX}/groups/{{group_id}}/reviews", tags=[Access.account])

ReviewId = Annotated[str, Path(max_length=64, pattern="^[0-9a-z]*$")]
LessonKey = Annotated[str, Query(max_length=200, pattern="^[^\x00]*$")]


@router.get("", name="group_reviews")
async def show_queue(
    request: Request,
    lang: str,
    group_id: GroupId,
    viewer: GroupViewerDep,
    db: DatabaseDep,
    catalog: CatalogDep,
    lesson: LessonKey = "",
    sort: SortColumn = None,
    reverse: Reversed = False,
) -> HTMLResponse:
    """Marks the viewer's notification as read before it looks: what is submitted later notifies them again."""
    async with db.session() as session:
        staff = await find_staff(session, viewer, group_id)
        unread = await find_unread(session, viewer.account.id, NotificationKind.review_request, staff.group.id)
    if unread is not None:
        async with db.writing() as session:
            await mark_read(session, viewer.account.id, unread)
    async with db.session() as session:
        queue = await load_queue(session, staff.group, lesson)
    return _queue_page(request, staff, queue, catalog, lesson, sort=sort, reverse=reverse)


@router.get("/{review_id}", name="group_review")
async def show_review(
    request: Request,
    lang: str,
    group_id: GroupId,
    review_id: ReviewId,
    viewer: GroupViewerDep,
    db: DatabaseDep,
    catalog: CatalogDep,
) -> HTMLResponse:
    """Not of code that was withdrawn: that shows only what a reviewer was about to send."""
    return await _review_page(request, viewer, group_id, review_id, db, catalog)


@router.get("/{review_id}/comments", name="add_review_comment_again")
@router.get("/{review_id}/comments/{comment_id}/remove", name="remove_review_comment_again")
async def show_review_again(
    request: Request, lang: str, group_id: GroupId, review_id: ReviewId, viewer: GroupViewerDep
) -> RedirectResponse:
    return redirect_to_page(request, "group_review", group_id=group_id, review_id=review_id)


@router.post("/{review_id}/comments", name="add_review_comment")
async def post_comment(
    request: Request,
    lang: str,
    group_id: GroupId,
    review_id: ReviewId,
    viewer: GroupViewerDep,
    fields: FormFields,
    db: DatabaseDep,
    catalog: CatalogDep,
) -> Response:
    """Comment on the line in the field ``line``. A remark in the same form is shown again, until it is sent."""
    line = fields.get("line", "")
    try:
        async with db.writing() as session:
            staff = await find_staff(session, viewer, group_id)
            found = await find_review(session, staff.group, review_id)
            await add_comment(session, found.review, viewer.account, line, fields.get("text", ""))
    except LockstepError as e:
        return await _review_page(request, viewer, group_id, review_id, db, catalog, e, fields)
    if remark := fields.get("remark", "").strip():
        return await _review_page(request, viewer, group_id, review_id, db, catalog, None, {"remark": remark})
    return _to_review(request, "saved", group_id, review_id, f"#code-line-{line}")


@router.post("/{review_id}/comments/{comment_id}/remove", name="remove_review_comment")
async def delete_comment(
    request: Request,
    lang: str,
    group_id: GroupId,
    review_id: ReviewId,
    comment_id: ReviewId,
    viewer: GroupViewerDep,
    fields: FormFields,
    db: DatabaseDep,
    catalog: CatalogDep,
) -> Response:
    """What was typed in the same form is shown again."""
    try:
        async with db.writing() as session:
            staff = await find_staff(session, viewer, group_id)
            found = await find_review(session, staff.group, review_id)
            await remove_comment(session, found.review, viewer.account, comment_id)
    except LockstepError as e:
        return await _review_page(request, viewer, group_id, review_id, db, catalog, e, fields)
    if fields.get("remark", "").strip() or fields.get("text", "").strip():
        return await _review_page(request, viewer, group_id, review_id, db, catalog, None, fields)
    return _to_review(request, "saved", group_id, review_id)


@router.post("/{review_id}", name="decide_review")
async def post_decision(
    request: Request,
    lang: str,
    group_id: GroupId,
    review_id: ReviewId,
    viewer: GroupViewerDep,
    fields: FormFields,
    db: DatabaseDep,
    catalog: CatalogDep,
    progress: ProgressServiceDep,
) -> Response:
    """Accept the code if the field ``decision`` is ``accept``; otherwise, request changes.

    A comment in the same form is added before.
    """
    accepts = fields.get("decision") == "accept"
    seen = fields.get("seen", "").split()
    try:
        async with db.writing() as session:
            staff = await find_staff(session, viewer, group_id)
            review = (await find_review(session, staff.group, review_id)).review
            remark, text = fields.get("remark", ""), fields.get("text", "")
            if text.strip():
                await add_comment(session, review, viewer.account, fields.get("line", ""), text)
            lessons = CATALOG.get(request.app)
            await decide(session, progress, lessons, review, viewer.account, remark, seen, accepts=accepts)
    except LockstepError as e:
        return await _review_page(request, viewer, group_id, review_id, db, catalog, e, fields)
    return redirect_after(
        request, "review_accepted" if accepts else "review_returned", "group_reviews", group_id=group_id
    )


def _to_review(request: Request, what: str, group_id: str, review_id: str, anchor: str = "") -> Response:
    return redirect_after(request, what, "group_review", anchor, group_id=group_id, review_id=review_id)


async def _review_page(
    request: Request,
    viewer: GroupViewer,
    group_id: str,
    review_id: str,
    db: Database,
    catalog: CatalogView,
    failure: LockstepError | None = None,
    fields: Mapping[str, str] | None = None,
) -> HTMLResponse:
    """The review as it is now, with what was typed and not stored.

    If it is no longer there, for instance because its learner left the group, the list of reviews shows what was typed.
    """
    lang = request.path_params["lang"]
    typed = {name: redisplayed_text(value) for name, value in (fields or {}).items()}
    async with db.session() as session:
        staff = await find_staff(session, viewer, group_id)
        try:
            found = await find_review(session, staff.group, review_id)
            if found.review.state == ReviewState.withdrawn and failure is None:
                raise ReviewNotFound
        except ReviewNotFound as gone:
            unsaved = {name: text for name in ("text", "remark") if (text := typed.get(name, "")).strip()}
            if not unsaved:
                raise
            return _queue_page(request, staff, await load_queue(session, staff.group), catalog, "", gone, unsaved)
        earlier = await list_earlier_reviews(session, staff.group, found.review)
        facts = await _facts(session, found.review, catalog, lang)
    facts |= {
        "viewer_id": viewer.account.id,
        "found": found,
        "earlier": earlier,
        "fields": typed,
        **_titles(catalog, lang),
    }
    return staff_page(request, "groups/review.html", staff, failure, **facts)


def _queue_page(
    request: Request,
    staff: Staff,
    queue: ReviewQueue,
    catalog: CatalogView,
    lesson: str,
    failure: LockstepError | None = None,
    unsaved: Mapping[str, str] | None = None,
    *,
    sort: int | None = None,
    reverse: bool = False,
) -> HTMLResponse:
    lang = request.path_params["lang"]
    facts: dict[str, Any] = {"queue": queue, "lesson": lesson, "most": MAX_SHOWN, "unsaved": unsaved or {}}
    facts["waiting"] = _waiting_table(queue, staff, catalog, lang).sorted_by(sort, reverse=reverse)
    facts["reviewed"] = reviews_exercises(catalog, staff.group.course, lang)
    return staff_page(request, "groups/reviews.html", staff, failure, **facts, **_titles(catalog, lang))


def _waiting_table(queue: ReviewQueue, staff: Staff, catalog: CatalogView, lang: str) -> ReportTable:
    zone = group_zone(staff.group)
    rows = []
    for one in queue.waiting:
        key, cell, moment = one.review.lesson, one.review.exercise, one.review.requested_at
        name = f"{catalog.cell_title(key, cell, lang)} · {catalog.lesson_title(key, lang)}"
        link = ReportLink("group_review", {"group_id": staff.group.id, "review_id": one.review.id})
        submitted = ReportCell(i18n.date_and_time(moment.astimezone(zone)), moment)
        rows.append((ReportCell(name, link=link), ReportCell(one.learner.name), submitted))
    columns = (gettext("Exercise"), gettext("Learner"), pgettext("a time", "Submitted"))
    return ReportTable("waiting", gettext("Waiting"), columns, rows, gettext("Nothing is waiting."))


def reviews_exercises(catalog: CatalogView, course: str, lang: str) -> bool:
    """Whether instructors review any exercise of the course."""
    outline = catalog.find_outline(course, lang)
    lessons = [entry.lesson for entry in outline.lessons if entry.lesson] if outline is not None else []
    return any(cell.exercise.is_reviewed for lesson in lessons for cell in lesson.exercises if cell.exercise)


async def _facts(session: AsyncSession, review: Review, catalog: CatalogView, lang: str) -> dict[str, Any]:
    lines = await load_lines(session, review)
    results = load_results(review.results)
    titles = {one.name: catalog.check_title(review.lesson, review.exercise, one.name, lang) for one in results}
    seen = " ".join(comment.id for line in lines for comment in line.comments)
    return {"lines": lines, "results": results, "titles": titles, "seen": seen, "remark": to_markup(review.remark)}


def _titles(catalog: CatalogView, lang: str) -> dict[str, Any]:
    return {
        "lesson_title": lambda key: catalog.lesson_title(key, lang),
        "cell_title": lambda key, cell: catalog.cell_title(key, cell, lang),
    }
