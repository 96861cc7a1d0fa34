"""What instructors do with comments (the queue, the actions on each comment), and the comments of one author."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from fastapi import APIRouter
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app import i18n
from app.accounts.dependencies import OptionalAccount, RequiredInstructor
from app.accounts.models import Account
from app.accounts.service import LearnerNotFound, find_by_handle
from app.comments import moderation, queries
from app.comments.errors import ModerationConflict, ReasonRequired
from app.comments.forms import CommentForm, FormAction
from app.comments.models import Comment
from app.comments.permissions import Viewer
from app.comments.queries import ModerationQueue
from app.comments.reactions import award_helpful
from app.comments.responses import form_error_response, redirect_to_comment
from app.comments.views import CommentView, comment_views
from app.db import Database
from app.errors import InvalidInput
from app.lessons.catalog import CatalogView
from app.lessons.dependencies import CatalogDep
from app.progress.service import ProgressServiceDep
from app.web.access import Access
from app.web.dependencies import DatabaseDep
from app.web.forms import FormFields, count_field, new_idempotency_key
from app.web.languages import LANGUAGE_PREFIX
from app.web.pagination import BeforeCursor
from app.web.rendering import is_htmx_request, render_fragment, render_page_or_fragment, render_private_page

router = APIRouter(prefix=LANGUAGE_PREFIX)
unlocalized_router = APIRouter(tags=[Access.public])
"""Routes without a language in the URL: comments contain these links, and readers' languages differ."""


class ModerationAction(StrEnum):
    """An action of an instructor on a comment."""

    pin = "pin"
    unpin = "unpin"
    answer = "answer"
    unanswer = "unanswer"
    hide = "hide"
    show = "show"
    dismiss = "dismiss"


@router.get("/moderation", name="moderation", tags=[Access.instructor])
async def show_moderation_queue(
    request: Request,
    lang: str,
    account: RequiredInstructor,
    catalog: CatalogDep,
    db: DatabaseDep,
    kind: ModerationQueue | None = None,
    before: BeforeCursor = None,
) -> Response:
    """Without a kind, the first queue in which something waits."""
    async with db.session() as session:
        waiting = await queries.count_waiting(session)
        kind = kind or next((each for each, count in waiting.items() if count), ModerationQueue.held)
        listed = await queries.list_moderation_queue(session, kind, before)
        views = await comment_views(session, Viewer.of(account), listed.comments)
    facts: dict[str, Any] = {"kind": kind, "kinds": list(ModerationQueue), "views": views, "before": listed.before}
    facts |= {"waiting": waiting, "max_waiting": queries.MAX_WAITING_COUNT}
    return render_page_or_fragment(
        request, "comments/_queue.html", "comments/moderation.html", titles=_lesson_titles(catalog, views), **facts
    )


@router.post("/comments/{comment_id}/moderate", name="moderate_comment", tags=[Access.instructor])
async def moderate_comment(
    request: Request,
    lang: str,
    comment_id: str,
    account: RequiredInstructor,
    catalog: CatalogDep,
    fields: FormFields,
    progress: ProgressServiceDep,
    db: DatabaseDep,
) -> Response:
    try:
        verb = ModerationAction(fields.get("verb", ""))
    except ValueError as e:
        raise InvalidInput(reason="verb") from e
    reason = fields.get("text", "")
    viewer, note = Viewer.of(account), ""
    try:
        async with db.writing() as session:
            comment = await _apply_action(session, account, comment_id, verb, fields)
            if verb is ModerationAction.answer and comment.author_id != account.id:
                await award_helpful(session, progress.ledger, comment)
            (view,) = await comment_views(session, viewer, [comment])
    except ReasonRequired as problem:
        async with db.session() as session:
            comment = await queries.get_comment(session, viewer, comment_id)
        form = CommentForm(
            comment.lesson,
            comment.cell,
            FormAction.hide,
            comment,
            reason,
            new_idempotency_key(),
            error=problem.localized_message(),
        )
        return form_error_response(request, form, account, problem)
    except ModerationConflict as problem:
        if not is_htmx_request(request):
            raise
        comment, view = await _reload_comment(db, viewer, comment_id)
        note = problem.localized_message()
    if (kind := fields.get("queue", "")) not in list(ModerationQueue):
        return redirect_to_comment(request, lang, comment)
    if is_htmx_request(request):
        return render_fragment(
            request, "comments/_queue_row.html", view=view, kind=kind, titles=_lesson_titles(catalog, [view]), note=note
        )
    return RedirectResponse(f"{request.app.url_path_for('moderation', lang=lang)}?kind={kind}", 303)


@router.get("/learners/{handle}/comments", name="comments_by_author", tags=[Access.public])
async def show_comments_by_author(
    request: Request,
    lang: str,
    handle: str,
    catalog: CatalogDep,
    account: OptionalAccount,
    db: DatabaseDep,
    before: BeforeCursor = None,
) -> Response:
    viewer = Viewer.of(account)
    async with db.session() as session:
        author = await find_by_handle(session, handle)
        if author is None:
            raise LearnerNotFound
        listed = await queries.list_comments_by_author(session, viewer, author.id, before, catalog.hidden)
        if not (listed.comments or _may_see_author(viewer, author)):
            raise LearnerNotFound
        views = await comment_views(session, viewer, listed.comments)
    return render_private_page(request, "comments/author.html", author=author, views=views, before=listed.before)


@unlocalized_router.get("/learners/{handle}/comments", name="mention")
async def redirect_to_author(request: Request, handle: str) -> RedirectResponse:
    """The target of mentions: comments are rendered once, for readers of every language."""
    address = request.app.url_path_for("comments_by_author", lang=i18n.current_language(), handle=handle)
    return RedirectResponse(address, 302, {"vary": "accept-language, cookie", "cache-control": "no-store"})


def _lesson_titles(catalog: CatalogView, views: Iterable[CommentView]) -> dict[str, str]:
    """The titles of the comments' lessons, by ``course/slug``."""
    keys = {view.comment.lesson for view in views}
    return {key: catalog.lesson_title(key, i18n.current_language()) for key in keys}


async def _apply_action(
    session: AsyncSession, account: Account, comment_id: str, verb: ModerationAction, fields: Mapping[str, str]
) -> Comment:
    match verb:
        case ModerationAction.pin | ModerationAction.unpin:
            return await moderation.set_pinned(session, account, comment_id, on=verb is ModerationAction.pin)
        case ModerationAction.answer | ModerationAction.unanswer:
            return await moderation.set_answer(session, account, comment_id, on=verb is ModerationAction.answer)
        case ModerationAction.hide:
            return await moderation.hide_comment(session, account, comment_id, fields.get("text", ""))
        case ModerationAction.show:
            edits = count_field(fields, "edits") if "edits" in fields else None
            return await moderation.approve_comment(session, account, comment_id, edits)
        case ModerationAction.dismiss:
            return await moderation.dismiss_reports(session, account, comment_id)


async def _reload_comment(db: Database, viewer: Viewer, comment_id: str) -> tuple[Comment, CommentView]:
    async with db.session() as session:
        comment = await queries.get_comment(session, viewer, comment_id)
        (view,) = await comment_views(session, viewer, [comment])
    return comment, view


def _may_see_author(viewer: Viewer, author: Account) -> bool:
    """Whether this viewer may see the name of an author none of whose comments they can read."""
    return author.public_profile or viewer.instructor or viewer.account_id == author.id
