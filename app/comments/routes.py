"""Comments over HTTP: pages that work without a script, and the same as fragments for htmx.

A form is answered with a redirect to the comment; htmx follows it and gets the thread as a fragment. A form with errors
is shown again with the text and the error, status 422 (429 if the author must wait).

Contexts of the templates:

``comments/comments.html``
    ``lesson``, ``cell`` (Cell or None), ``threads_html``, ``form``, ``count``, ``cells``, ``account``.
``comments/thread.html``
    ``lesson``, ``cell``, ``thread``, ``account``, ``target``: the ID of the requested comment.
``comments/form.html``
    ``form``, ``account``, ``back``: the page to return to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from markupsafe import Markup
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.requests import Request
from starlette.responses import Response

from app.accounts.dependencies import (
    LoginRequired,
    OptionalAccount,
    RequiredAccount,
    SecondFactorRequired,
    get_principal,
)
from app.accounts.models import Account
from app.comments import editing, moderation, queries, reactions
from app.comments.errors import CommentedCellNotFound, CommentNotFound, EmailNotConfirmed
from app.comments.forms import CommentForm, FormAction
from app.comments.models import Comment, ReactionKind
from app.comments.permissions import Permission, Viewer, can_read, permissions_for
from app.comments.responses import (
    form_error_response,
    form_response,
    redirect_to_comment,
    removed_thread_response,
)
from app.comments.thread_list import ThreadLists, ThreadListsDep
from app.comments.views import ThreadView, thread_views
from app.db import Database
from app.errors import InvalidInput, LockstepError, TooManyRequests
from app.lessons.dependencies import CatalogDep
from app.lessons.model import Cell, Lesson
from app.lessons.url_paths import LESSON_PATH
from app.progress.service import ProgressServiceDep
from app.settings import Settings
from app.web.access import Access, is_public
from app.web.dependencies import DatabaseDep, SettingsDep
from app.web.forms import FormFields, count_field, idempotency_key, new_idempotency_key
from app.web.languages import LANGUAGE_PREFIX
from app.web.pagination import BeforeCursor
from app.web.rendering import (
    frame_response,
    is_htmx_request,
    render_fragment,
    render_frame,
    render_page_or_fragment,
    render_part,
    render_private_page,
    slot_mark,
)


async def _hide_draft_comments(
    request: Request, catalog: CatalogDep, account: OptionalAccount, db: DatabaseDep
) -> None:
    """Hide comments on a draft from everyone who may not see it. Raises CommentNotFound."""
    comment_id = request.path_params.get("comment_id")
    if comment_id is None or not catalog.hidden:
        return
    if account is None and not is_public(request):
        return  # the route asks for a sign-in first, whether or not the comment exists
    async with db.session() as session:
        lesson = await queries.get_lesson_key(session, comment_id)
    if lesson in catalog.hidden:
        raise CommentNotFound


router = APIRouter(prefix=LANGUAGE_PREFIX, dependencies=[Depends(_hide_draft_comments)])

CellName = Annotated[str, Query(max_length=100, pattern="^[^\x00]*$")]


@router.get(f"{LESSON_PATH}/comments", name="comments", tags=[Access.public])
async def show_comments(
    request: Request,
    lang: str,
    course: str,
    slug: str,
    catalog: CatalogDep,
    account: OptionalAccount,
    db: DatabaseDep,
    lists: ThreadListsDep,
    cell: CellName = "",
    before: BeforeCursor = None,
) -> Response:
    edition, lesson = catalog.digest, catalog.lesson(course, slug, lang)  # lessons may change from here on
    where = _find_cell(lesson, cell)
    if before is not None:
        return await _older_comments_response(request, db, lesson, where, account, before)
    return await _comments_response(request, db, lists, edition, lesson, where, account)


@router.post(f"{LESSON_PATH}/comments", name="create_comment", tags=[Access.account])
async def create_comment(
    request: Request,
    lang: str,
    course: str,
    slug: str,
    catalog: CatalogDep,
    account: OptionalAccount,
    fields: FormFields,
    db: DatabaseDep,
    settings: SettingsDep,
) -> Response:
    lesson = catalog.lesson(course, slug, lang)
    cell = _find_cell(lesson, fields.get("cell", ""))
    thread_id = fields.get("thread") or None
    key, text = idempotency_key(fields), fields.get("text", "")
    draft = editing.CommentDraft(lesson.key, cell.name if cell else "", thread_id, text, key, lang)
    try:
        writer = await _require_writer(request, settings, account)
        async with db.writing() as session:
            if thread_id and await queries.get_lesson_key(session, thread_id) in catalog.hidden:
                raise CommentNotFound
            comment = await editing.create_comment(session, writer, draft, settings.hold_first_comments)
    except LockstepError as problem:
        about = await _find_reply_target(db, account, thread_id)
        action = FormAction.reply if about else None
        form = CommentForm(lesson.key, draft.cell, action, about, text, key, error=problem.localized_message())
        return form_error_response(request, form, account, problem)
    return redirect_to_comment(request, lang, comment)


@router.get("/comments/{comment_id}", name="comment", tags=[Access.public])
async def show_comment(
    request: Request,
    lang: str,
    comment_id: str,
    catalog: CatalogDep,
    account: OptionalAccount,
    db: DatabaseDep,
    after: BeforeCursor = None,
    alone: bool = False,
) -> Response:
    """The thread of a comment. With ``alone``, htmx gets only the comment itself."""
    viewer = Viewer.of(account)
    async with db.session() as session:
        comment = await queries.get_comment(session, viewer, comment_id)
        thread = await queries.get_thread(session, viewer, comment, after)
        (view,) = await thread_views(session, viewer, [thread])
        facts = await _location_context(session, catalog.find_lesson(comment.lesson, lang), comment.cell)
    facts |= {"thread": view, "account": account}
    found = next((one for one in (view.root, *view.replies) if one.comment.id == comment.id), view.root)
    part = "comments/_single_comment.html" if alone else "comments/_thread.html"
    return render_page_or_fragment(request, part, "comments/thread.html", view=found, target=comment.id, **facts)


@router.get("/comments/{comment_id}/reply", name="reply_form", tags=[Access.public])
async def reply_form(
    request: Request, lang: str, comment_id: str, account: OptionalAccount, db: DatabaseDep
) -> Response:
    form = await _form_for_comment(db, account, comment_id, FormAction.reply, Permission.reply)
    return form_response(request, form, account)


@router.get("/comments/{comment_id}/forms/{action}", name="comment_form", tags=[Access.account])
async def comment_form(
    request: Request, lang: str, comment_id: str, action: FormAction, account: RequiredAccount, db: DatabaseDep
) -> Response:
    needed = Permission(action)
    return form_response(request, await _form_for_comment(db, account, comment_id, action, needed), account)


@router.get("/comments/{comment_id}/history", name="comment_history", tags=[Access.account])
async def show_history(
    request: Request, lang: str, comment_id: str, account: RequiredAccount, db: DatabaseDep
) -> Response:
    viewer = Viewer.of(account)
    async with db.session() as session:
        comment = await queries.get_comment(session, viewer, comment_id)
        if Permission.history not in permissions_for(comment, viewer):
            raise CommentNotFound
        versions = await queries.list_versions(session, comment)
    return render_private_page(request, "comments/history.html", comment=comment, versions=versions)


@router.post("/comments/{comment_id}", name="change_comment", tags=[Access.account])
async def change_comment(
    request: Request,
    lang: str,
    comment_id: str,
    account: RequiredAccount,
    fields: FormFields,
    db: DatabaseDep,
    settings: SettingsDep,
) -> Response:
    text, edits = fields.get("text", ""), count_field(fields, "edits")
    writer = await _require_writer(request, settings, account)
    try:
        async with db.writing() as session:
            comment = await editing.edit_comment(session, writer, comment_id, text, edits)
    except (InvalidInput, TooManyRequests) as problem:
        form = await _form_for_comment(
            db, account, comment_id, FormAction.edit, Permission.edit, text, problem.localized_message()
        )
        return form_error_response(request, form, account, problem)
    return redirect_to_comment(request, lang, comment, alone=True)


@router.post("/comments/{comment_id}/delete", name="delete_comment", tags=[Access.account])
async def delete_comment(
    request: Request,
    lang: str,
    comment_id: str,
    catalog: CatalogDep,
    account: RequiredAccount,
    db: DatabaseDep,
) -> Response:
    async with db.writing() as session:
        comment = await editing.delete_comment(session, account, comment_id)
        root = await session.get_one(Comment, comment.root_id)
        await session.refresh(root)
        around = await _location_context(session, catalog.find_lesson(comment.lesson, lang), comment.cell)
    if root.id == comment.id and not root.reply_count:
        return removed_thread_response(request, lang, comment, around)
    return redirect_to_comment(request, lang, root if comment.thread_id else comment)


@router.post("/comments/{comment_id}/reactions", name="react_to_comment", tags=[Access.account])
async def react_to_comment(
    request: Request,
    lang: str,
    comment_id: str,
    account: RequiredAccount,
    fields: FormFields,
    progress: ProgressServiceDep,
    db: DatabaseDep,
) -> Response:
    """Add or remove a reaction: one of the fields ``add`` and ``remove`` holds its kind."""
    on = "add" in fields
    try:
        kind = ReactionKind(fields["add"] if on else fields.get("remove", ""))
    except ValueError as e:
        raise InvalidInput(reason="add") from e
    async with db.writing() as session:
        comment = await reactions.set_reaction(session, account, comment_id, kind, on=on)
        if on and kind is ReactionKind.helpful:
            await reactions.award_helpful(session, progress.ledger, comment)
    return redirect_to_comment(request, lang, comment, alone=True)


@router.post("/comments/{comment_id}/report", name="report_comment", tags=[Access.account])
async def report_comment(
    request: Request, lang: str, comment_id: str, account: RequiredAccount, fields: FormFields, db: DatabaseDep
) -> Response:
    reason = fields.get("text", "")
    try:
        async with db.writing() as session:
            await moderation.report_comment(session, account, comment_id, reason)
    except (InvalidInput, TooManyRequests) as problem:
        form = await _form_for_comment(
            db, account, comment_id, FormAction.report, Permission.report, reason, problem.localized_message()
        )
        return form_error_response(request, form, account, problem)
    return render_page_or_fragment(request, "comments/_reported.html", "comments/reported.html", comment_id=comment_id)


@router.get("/comment-handles", name="comment_handles", tags=[Access.account])
async def suggest_handles(
    request: Request,
    account: RequiredAccount,
    lang: str,
    lesson: Annotated[str, Query(max_length=200, pattern="^[^\x00]*$")],
    begins: Annotated[str, Query(max_length=40, pattern="^[a-z0-9-]*$")],
    catalog: CatalogDep,
    response: Response,
    db: DatabaseDep,
    cell: CellName = "",
    thread: BeforeCursor = None,
) -> list[dict[str, str]]:
    """People to suggest for a mention: those who wrote in the thread, or started one in the same place."""
    response.headers["cache-control"] = "no-store"
    if lesson in catalog.hidden:
        return []
    async with db.session() as session:
        found = await queries.find_handles(session, lesson, cell, thread, begins)
    return [{"handle": handle, "name": name} for handle, name in found]


# --- helpers ----------------------------------------------------------------------------------------------------------


async def _comments_response(
    request: Request,
    db: Database,
    lists: ThreadLists,
    edition: str,
    lesson: Lesson,
    cell: Cell | None,
    account: Account | None,
) -> Response:
    name, place = cell.name if cell else "", {"lesson": lesson, "cell": cell}

    def render(threads: Sequence[ThreadView], before: str | None) -> str:
        return render_part(request, "comments/_threads.html", **place, threads=threads, before=before)

    part, counts = await lists.load(db, Viewer.of(account), lesson.key, name, render)
    facts = place | _count_context(lesson, name, counts) | {"account": account}
    key = new_idempotency_key()
    if is_htmx_request(request):
        form = CommentForm(lesson.key, name, key=slot_mark("key"))
        frame = lists.frame(
            (edition, lesson.key, name, frozenset(counts.items()), account and account.handle),
            lambda: render_frame(request, "comments/_comments.html", ["threads_html"], form=form, **facts),
        )
        return frame_response(request, frame, key=key.encode(), threads_html=part)
    facts["form"] = CommentForm(lesson.key, name, key=key)
    threads = Markup(part.body.decode())  # noqa: S704 - render() made it
    return render_private_page(request, "comments/comments.html", threads_html=threads, **facts)


async def _older_comments_response(
    request: Request, db: Database, lesson: Lesson, cell: Cell | None, account: Account | None, before: str
) -> Response:
    """The threads before a cursor: what is appended to the list, or a page."""
    viewer, name = Viewer.of(account), cell.name if cell else ""
    async with db.session() as session:
        threads, next_before = await queries.list_threads(session, viewer, lesson.key, name, before)
        views = await thread_views(session, viewer, threads)
        facts = await _location_context(session, lesson, name)
    facts |= {"threads": views, "before": next_before}
    if is_htmx_request(request):
        return render_fragment(request, "comments/_threads.html", **facts)
    html = render_part(request, "comments/_threads.html", **facts)
    form = CommentForm(lesson.key, name, key=new_idempotency_key())
    return render_private_page(
        request, "comments/comments.html", threads_html=html, account=account, form=form, **facts
    )


async def _location_context(session: AsyncSession, lesson: Lesson | None, name: str) -> dict[str, Any]:
    """The lesson and cell, the number of comments there, and the lesson's cells that have comments."""
    counts = await queries.count_by_cell(session, lesson.key) if lesson else {}
    return {"lesson": lesson, "cell": lesson and lesson.cell(name), **_count_context(lesson, name, counts)}


def _count_context(lesson: Lesson | None, name: str, counts: Mapping[str, int]) -> dict[str, Any]:
    cells = [(found, counts[found.name]) for found in lesson.cells if found.name in counts] if lesson else []
    return {"cells": cells, "count": counts.get(name, 0)}


def _find_cell(lesson: Lesson, name: str) -> Cell | None:
    cell = lesson.cell(name) if name else None
    if name and cell is None:
        raise CommentedCellNotFound
    return cell


async def _require_writer(request: Request, settings: Settings, account: Account | None) -> Account:
    """The account, if it may write. Everyone sees from a comment that its author is an instructor.

    Raises:
        LoginRequired, SecondFactorRequired, EmailNotConfirmed: it may not.
    """
    if account is None:
        raise LoginRequired
    if (await get_principal(request)).lacks_second_factor:
        raise SecondFactorRequired
    if settings.smtp_url and account.email_confirmed_at is None:
        raise EmailNotConfirmed
    return account


async def _find_reply_target(db: Database, account: Account | None, thread_id: str | None) -> Comment | None:
    async with db.session() as session:
        try:
            about = await queries.get_comment(session, Viewer.of(account), thread_id) if thread_id else None
        except CommentNotFound:
            return None
    return about if about and can_read(about, Viewer.of(account)) else None


async def _form_for_comment(
    db: Database,
    account: Account | None,
    comment_id: str,
    action: FormAction,
    needed: Permission,
    text: str | None = None,
    error: str = "",
) -> CommentForm:
    """The form for an action on a comment, if the account may do that."""
    viewer = Viewer.of(account)
    async with db.session() as session:
        comment = await queries.get_comment(session, viewer, comment_id)
    if needed not in permissions_for(comment, viewer):
        raise CommentNotFound
    said = comment.source if action is FormAction.edit else ""
    shown = said if text is None else text
    return CommentForm(
        comment.lesson, comment.cell, action, comment, shown, new_idempotency_key(), comment.edit_count, error
    )
