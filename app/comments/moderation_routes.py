"""What instructors do with comments: their queue, and the buttons beside each comment. And what one person wrote."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from fastapi import APIRouter
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app import i18n
from app.accounts.current import AnInstructor, CurrentAccount
from app.accounts.models import Account
from app.comments import listing, moderation
from app.comments.answers import refused, tell_learner, to_comment
from app.comments.errors import PersonUnknown, ReadAgain, WriteFirst
from app.comments.forms import Ask, Form
from app.comments.listing import Kind
from app.comments.models import Comment
from app.comments.reacting import honour
from app.comments.sight import Viewer
from app.comments.told import lesson_title
from app.comments.views import CommentView, comment_views
from app.db import Database
from app.errors import Unreadable
from app.lessons.catalog import CatalogView, TheCatalog
from app.notifications import service as notifications
from app.progress.service import TheProgress
from app.web.form import Fields, new_key, number_of
from app.web.languages import PREFIX
from app.web.page import by_htmx, either, fragment, own_page
from app.web.paging import Before

router = APIRouter(prefix=PREFIX)
bare = APIRouter()
"""Addresses without a language: those that are written into comments, which everyone reads in their own."""


class Verb(StrEnum):
    """What an instructor does with a comment."""

    pin = "pin"
    unpin = "unpin"
    answer = "answer"
    unanswer = "unanswer"
    hide = "hide"
    show = "show"
    dismiss = "dismiss"


@router.get("/moderation", name="moderation")
async def show_queue(
    request: Request,
    lang: str,
    account: AnInstructor,
    catalog: TheCatalog,
    kind: Kind = Kind.held,
    before: Before = None,
) -> Response:
    db: Database = request.app.state.db
    async with db.session() as session:
        listed = await listing.queue(session, kind, before)
        views = await comment_views(session, Viewer.of(account), listed.comments)
    facts = {"kind": kind, "kinds": list(Kind), "views": views, "before": listed.before}
    return either(request, "comments/_queue.html", "comments/moderation.html", titles=_titles(catalog, views), **facts)


@router.post("/comments/{comment_id}/moderate", name="moderate_comment")
async def moderate_comment(
    request: Request,
    lang: str,
    comment_id: str,
    account: AnInstructor,
    catalog: TheCatalog,
    fields: Fields,
    progress: TheProgress,
) -> Response:
    try:
        verb = Verb(fields.get("verb", ""))
    except ValueError as e:
        raise Unreadable(reason="verb") from e
    reason, db = fields.get("text", ""), request.app.state.db
    viewer, note = Viewer.of(account), ""
    try:
        async with db.writing() as session:
            comment = await _do(session, account, comment_id, verb, fields)
            helped = verb is Verb.answer and comment.author_id != account.id
            learner = await honour(session, progress.ledger, comment) if helped else None
            (view,) = await comment_views(session, viewer, [comment])
    except WriteFirst as problem:
        async with db.session() as session:
            comment = await listing.get(session, viewer, comment_id)
        form = Form(comment.lesson, comment.cell, Ask.hide, comment, reason, new_key(), error=problem.sentence())
        return refused(request, form, account, problem)
    except ReadAgain as problem:
        if not by_htmx(request):
            raise
        comment, view = await _as_it_is(db, viewer, comment_id)
        note, learner = problem.sentence(), None
    tell_learner(request, learner)
    notifications.wake(request.app.state.bus, session)
    if (kind := fields.get("queue", "")) not in list(Kind):
        return to_comment(request, lang, comment)
    if by_htmx(request):
        return fragment(request, "comments/_row.html", view=view, kind=kind, titles=_titles(catalog, [view]), note=note)
    return RedirectResponse(f"{request.app.url_path_for('moderation', lang=lang)}?kind={kind}", 303)


@router.get("/people/{handle}/comments", name="comments_of")
async def show_comments_of(
    request: Request, lang: str, handle: str, catalog: TheCatalog, account: CurrentAccount, before: Before = None
) -> Response:
    viewer = Viewer.of(account)
    db: Database = request.app.state.db
    async with db.session() as session:
        person = await _person(session, handle)
        listed = await listing.written_by(session, viewer, person.id, before, catalog.hidden)
        if not (listed.comments or _known_to(viewer, person)):
            raise PersonUnknown
        views = await comment_views(session, viewer, listed.comments)
    return own_page(request, "comments/person.html", person=person, views=views, before=listed.before)


@bare.get("/people/{handle}", name="person")
async def to_person(request: Request, handle: str) -> RedirectResponse:
    address = request.app.url_path_for("comments_of", lang=i18n.current(), handle=handle)
    return RedirectResponse(address, 302, {"vary": "accept-language, cookie", "cache-control": "no-store"})


def _titles(catalog: CatalogView, views: Iterable[CommentView]) -> dict[str, str]:
    """What the lessons of some comments are called, by "course/slug"."""
    keys = {view.comment.lesson for view in views}
    return {key: lesson_title(catalog, key) for key in keys}


async def _do(
    session: AsyncSession, account: Account, comment_id: str, verb: Verb, fields: Mapping[str, str]
) -> Comment:
    match verb:
        case Verb.pin | Verb.unpin:
            return await moderation.pin(session, account, comment_id, on=verb is Verb.pin)
        case Verb.answer | Verb.unanswer:
            return await moderation.answer(session, account, comment_id, on=verb is Verb.answer)
        case Verb.hide:
            return await moderation.hide(session, account, comment_id, fields.get("text", ""))
        case Verb.show:
            edits = number_of(fields, "edits") if "edits" in fields else None
            return await moderation.show(session, account, comment_id, edits)
        case Verb.dismiss:
            return await moderation.dismiss(session, account, comment_id)


async def _as_it_is(db: Database, viewer: Viewer, comment_id: str) -> tuple[Comment, CommentView]:
    """A comment with what it says now."""
    async with db.session() as session:
        comment = await listing.get(session, viewer, comment_id)
        (view,) = await comment_views(session, viewer, [comment])
    return comment, view


def _known_to(viewer: Viewer, person: Account) -> bool:
    """Whether this viewer may learn a person's name though nothing of theirs is there to be read."""
    return person.public_profile or viewer.instructor or viewer.account_id == person.id


async def _person(session: AsyncSession, handle: str) -> Account:
    known = select(Account).where(Account.handle == handle.lower(), Account.disabled_at.is_(None))
    person = await session.scalar(known) if "\0" not in handle and handle.isascii() else None
    if person is None:
        raise PersonUnknown
    return person
