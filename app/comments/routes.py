"""Comments over HTTP: pages that read without a script, and the same as fragments for htmx.

What a form sends is answered with a redirect to the comment, which htmx follows: it gets the thread as a fragment. A
form that cannot be taken comes back with what was typed and the reason beside it, status 422 (429 if it is too soon).

What templates get:

``comments/place.html``
    ``lesson``, ``cell`` (Cell or None), ``threads`` (ThreadView), ``before``, ``form``, ``counts``, ``account``.
``comments/thread.html``
    ``lesson``, ``cell``, ``thread``, ``account``, ``target``: the id of the comment that was asked for.
``comments/form.html``
    ``form``, ``account``, ``back``: where it came from.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.requests import Request
from starlette.responses import Response

from app.accounts.current import CurrentAccount, SignedIn, SignInNeeded
from app.accounts.models import Account
from app.comments import listing, moderation, reacting, writing
from app.comments.answers import form_answer, gone, refused, tell_learner, to_comment
from app.comments.errors import CommentUnknown, EmailUnconfirmed, PlaceUnknown
from app.comments.forms import Ask, Form
from app.comments.models import Comment, Reaction
from app.comments.sight import May, Viewer, can_read, may
from app.comments.views import thread_views
from app.db import Database
from app.errors import Problem, TooMany, Unreadable
from app.lessons.addresses import LESSON
from app.lessons.catalog import CatalogView, TheCatalog
from app.lessons.errors import CourseUnknown, LessonUnknown
from app.lessons.model import Cell, Lesson
from app.notifications import service as notifications
from app.progress.service import TheProgress
from app.web.access import ACCESS, Access
from app.web.form import Fields, key_of, new_key, number_of
from app.web.languages import PREFIX
from app.web.page import either, own_page
from app.web.paging import Before


async def _not_of_a_draft(request: Request, catalog: TheCatalog, account: CurrentAccount) -> None:
    """Comments on a draft do not exist for anyone who may not see it. Raises CommentUnknown."""
    comment_id = request.path_params.get("comment_id")
    if comment_id is None or not catalog.hidden:
        return
    if account is None and ACCESS[request.scope["route"].name] is not Access.public:
        return  # the route asks for a sign-in, whatever the comment is
    db: Database = request.app.state.db
    async with db.session() as session:
        lesson = await listing.lesson_of(session, comment_id)
    if lesson in catalog.hidden:
        raise CommentUnknown


router = APIRouter(prefix=PREFIX, dependencies=[Depends(_not_of_a_draft)])

CellName = Annotated[str, Query(max_length=100, pattern="^[^\x00]*$")]


@router.get(f"{LESSON}/comments", name="comments")
async def show_comments(
    request: Request,
    lang: str,
    course: str,
    slug: str,
    catalog: TheCatalog,
    account: CurrentAccount,
    cell: CellName = "",
    before: Before = None,
) -> Response:
    lesson = catalog.lesson(course, slug, lang)
    return await _place(request, lesson, _cell(lesson, cell), account, before)


@router.post(f"{LESSON}/comments", name="create_comment")
async def create_comment(
    request: Request, lang: str, course: str, slug: str, catalog: TheCatalog, account: CurrentAccount, fields: Fields
) -> Response:
    lesson = catalog.lesson(course, slug, lang)
    cell = _cell(lesson, fields.get("cell", ""))
    thread_id = fields.get("thread") or None
    key, text = key_of(fields), fields.get("text", "")
    draft = writing.Draft(lesson.key, cell.name if cell else "", thread_id, text, key, lang)
    db: Database = request.app.state.db
    try:
        writer = _writer(request, account)
        async with db.writing() as session:
            if thread_id and await listing.lesson_of(session, thread_id) in catalog.hidden:
                raise CommentUnknown
            comment = await writing.write(session, writer, draft, request.app.state.settings.hold_first_comments)
        notifications.wake(request.app.state.bus, session)
    except Problem as problem:
        about = await _reply_to(request, account, thread_id)
        ask = Ask.reply if about else None
        form = Form(lesson.key, draft.cell, ask, about, text, key, error=problem.sentence())
        return refused(request, form, account, problem)
    return to_comment(request, lang, comment)


@router.get("/comments/{comment_id}", name="comment")
async def show_comment(
    request: Request,
    lang: str,
    comment_id: str,
    catalog: TheCatalog,
    account: CurrentAccount,
    after: Before = None,
    alone: bool = False,
) -> Response:
    """The thread of a comment. ``alone``: htmx gets nothing but the comment itself."""
    viewer = Viewer.of(account)
    db: Database = request.app.state.db
    async with db.session() as session:
        comment = await listing.get(session, viewer, comment_id)
        thread = await listing.thread(session, viewer, comment, after)
        (view,) = await thread_views(session, viewer, [thread])
        facts = await _around(session, _lesson(catalog, comment.lesson, lang), comment.cell)
    facts |= {"thread": view, "account": account}
    found = next((one for one in (view.root, *view.replies) if one.comment.id == comment.id), view.root)
    part = "comments/_one.html" if alone else "comments/_thread.html"
    return either(request, part, "comments/thread.html", view=found, target=comment.id, **facts)


@router.get("/comments/{comment_id}/reply", name="reply_form")
async def reply_form(request: Request, lang: str, comment_id: str, account: CurrentAccount) -> Response:
    form = await _form_about(request, account, comment_id, Ask.reply, May.reply)
    return form_answer(request, form, account)


@router.get("/comments/{comment_id}/ask/{ask}", name="comment_form")
async def comment_form(request: Request, lang: str, comment_id: str, ask: Ask, account: SignedIn) -> Response:
    needed = May(ask)
    return form_answer(request, await _form_about(request, account, comment_id, ask, needed), account)


@router.get("/comments/{comment_id}/history", name="comment_history")
async def show_history(request: Request, lang: str, comment_id: str, account: SignedIn) -> Response:
    viewer = Viewer.of(account)
    db: Database = request.app.state.db
    async with db.session() as session:
        comment = await listing.get(session, viewer, comment_id)
        if May.history not in may(comment, viewer):
            raise CommentUnknown
        versions = await listing.versions(session, comment)
    return own_page(request, "comments/history.html", comment=comment, versions=versions)


@router.post("/comments/{comment_id}", name="change_comment")
async def change_comment(request: Request, lang: str, comment_id: str, account: SignedIn, fields: Fields) -> Response:
    text, edits = fields.get("text", ""), number_of(fields, "edits")
    db: Database = request.app.state.db
    try:
        async with db.writing() as session:
            comment = await writing.change(session, _writer(request, account), comment_id, text, edits)
        notifications.wake(request.app.state.bus, session)
    except (Unreadable, TooMany) as problem:
        form = await _form_about(request, account, comment_id, Ask.edit, May.edit, text, problem.sentence())
        return refused(request, form, account, problem)
    return to_comment(request, lang, comment, alone=True)


@router.post("/comments/{comment_id}/delete", name="delete_comment")
async def delete_comment(
    request: Request, lang: str, comment_id: str, catalog: TheCatalog, account: SignedIn
) -> Response:
    db: Database = request.app.state.db
    async with db.writing() as session:
        comment = await writing.remove(session, account, comment_id)
        root = await session.get_one(Comment, comment.root_id)
        await session.refresh(root)
        around = await _around(session, _lesson(catalog, comment.lesson, lang), comment.cell)
    notifications.wake(request.app.state.bus, session)
    if root.id == comment.id and not root.replies:
        return gone(request, lang, comment, around)
    return to_comment(request, lang, root if comment.thread_id else comment)


@router.post("/comments/{comment_id}/reactions", name="react_to_comment")
async def react_to_comment(
    request: Request, lang: str, comment_id: str, account: SignedIn, fields: Fields, progress: TheProgress
) -> Response:
    """Of the two fields ``add`` and ``remove``, one names the kind."""
    on = "add" in fields
    try:
        kind = Reaction(fields["add"] if on else fields.get("remove", ""))
    except ValueError as e:
        raise Unreadable(reason="add") from e
    db: Database = request.app.state.db
    async with db.writing() as session:
        comment = await reacting.react(session, account, comment_id, kind, on=on)
        helped = on and kind is Reaction.helpful
        learner = await reacting.honour(session, progress.ledger, comment) if helped else None
    tell_learner(request, learner)
    return to_comment(request, lang, comment, alone=True)


@router.post("/comments/{comment_id}/report", name="report_comment")
async def report_comment(request: Request, lang: str, comment_id: str, account: SignedIn, fields: Fields) -> Response:
    reason = fields.get("text", "")
    db: Database = request.app.state.db
    try:
        async with db.writing() as session:
            await moderation.report(session, account, comment_id, reason)
    except (Unreadable, TooMany) as problem:
        form = await _form_about(request, account, comment_id, Ask.report, May.report, reason, problem.sentence())
        return refused(request, form, account, problem)
    return either(request, "comments/_reported.html", "comments/reported.html", comment_id=comment_id)


@router.get("/comment-handles", name="comment_handles")
async def suggest_handles(
    request: Request,
    account: SignedIn,
    lang: str,
    lesson: Annotated[str, Query(max_length=200, pattern="^[^\x00]*$")],
    begins: Annotated[str, Query(max_length=40, pattern="^[a-z0-9-]*$")],
    catalog: TheCatalog,
    response: Response,
    cell: CellName = "",
    thread: Before = None,
) -> list[dict[str, str]]:
    """People to mention: those who wrote in the thread, or began one at the same place."""
    response.headers["cache-control"] = "no-store"
    if lesson in catalog.hidden:
        return []
    db: Database = request.app.state.db
    async with db.session() as session:
        found = await listing.handles_at(session, lesson, cell, thread, begins)
    return [{"handle": handle, "name": name} for handle, name in found]


# --- beneath ----------------------------------------------------------------------------------------------------------


async def _place(
    request: Request, lesson: Lesson, cell: Cell | None, account: Account | None, before: str | None
) -> Response:
    viewer = Viewer.of(account)
    db: Database = request.app.state.db
    name = cell.name if cell else ""
    async with db.session() as session:
        threads, further = await listing.threads(session, viewer, lesson.key, name, before)
        views = await thread_views(session, viewer, threads)
        facts = await _around(session, lesson, name)
    facts |= {"threads": views, "before": further, "account": account, "form": Form(lesson.key, name, key=new_key())}
    more = "comments/_more.html" if before else "comments/_place.html"
    return either(request, more, "comments/place.html", **facts)


async def _around(session: AsyncSession, lesson: Lesson | None, name: str) -> dict[str, Any]:
    """The lesson and cell of a place, how many comments there are, and at which of the lesson's cells there are any."""
    counts = await listing.counts(session, lesson.key) if lesson else {}
    cells = [(found, counts[found.name]) for found in lesson.cells if found.name in counts] if lesson else []
    return {"lesson": lesson, "cell": lesson and lesson.cell(name), "cells": cells, "count": counts.get(name, 0)}


def _cell(lesson: Lesson, name: str) -> Cell | None:
    cell = lesson.cell(name) if name else None
    if name and cell is None:
        raise PlaceUnknown
    return cell


def _lesson(catalog: CatalogView, key: str, lang: str) -> Lesson | None:
    """The lesson a comment is about; None once it is gone."""
    course, _slash, slug = key.partition("/")
    try:
        return catalog.lesson(course, slug, lang)
    except (CourseUnknown, LessonUnknown):
        return None


def _writer(request: Request, account: Account | None) -> Account:
    """The account, if it may write.

    Raises:
        SignInNeeded, EmailUnconfirmed: it may not.
    """
    if account is None:
        raise SignInNeeded
    if request.app.state.settings.smtp_url and account.email_confirmed_at is None:
        raise EmailUnconfirmed
    return account


async def _reply_to(request: Request, account: Account | None, thread_id: str | None) -> Comment | None:
    db: Database = request.app.state.db
    async with db.session() as session:
        try:
            about = await listing.get(session, Viewer.of(account), thread_id) if thread_id else None
        except CommentUnknown:
            return None
    return about if about and can_read(about, Viewer.of(account)) else None


async def _form_about(
    request: Request,
    account: Account | None,
    comment_id: str,
    ask: Ask,
    needed: May,
    text: str | None = None,
    error: str = "",
) -> Form:
    """A form beside a comment that this account may fill in."""
    viewer = Viewer.of(account)
    db: Database = request.app.state.db
    async with db.session() as session:
        comment = await listing.get(session, viewer, comment_id)
    if needed not in may(comment, viewer):
        raise CommentUnknown
    said = comment.source if ask is Ask.edit else ""
    shown = said if text is None else text
    return Form(comment.lesson, comment.cell, ask, comment, shown, new_key(), comment.edits, error)
