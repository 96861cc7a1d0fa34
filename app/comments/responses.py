"""Responses about comments: a page, the same as a fragment for htmx, or a redirect to a comment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.accounts.models import Account
from app.comments.forms import CommentForm
from app.comments.models import Comment
from app.errors import LockstepError
from app.web.rendering import is_htmx_request, render_fragment, render_page_or_fragment
from app.web.security_headers import NO_STORE


def form_response(request: Request, form: CommentForm, account: Account | None, http_status: int = 200) -> Response:
    """A form; without a script, it is a page of its own."""
    return render_page_or_fragment(
        request, "comments/_form.html", "comments/form.html", http_status, form=form, account=account
    )


def form_error_response(
    request: Request, form: CommentForm, account: Account | None, problem: LockstepError
) -> Response:
    """The form with the text that was typed and the error."""
    status = problem.status if problem.status in (401, 429) else 422
    response = form_response(request, form, account, status)
    response.headers.update(problem.headers)
    return response


def redirect_to_comment(request: Request, lang: str, comment: Comment, *, alone: bool = False) -> Response:
    """Redirect to a comment: htmx gets its thread, or with ``alone`` only the comment."""
    address = request.app.url_path_for("comment", lang=lang, comment_id=comment.id)
    query = "?alone=1" if alone and is_htmx_request(request) else ""
    return RedirectResponse(f"{address}{query}#c-{comment.id}", 303, NO_STORE)


def removed_thread_response(request: Request, lang: str, comment: Comment, facts: Mapping[str, Any]) -> Response:
    """For a removed thread, htmx gets an empty fragment to replace it; without a script, the browser gets the list."""
    if is_htmx_request(request):
        return render_fragment(request, "comments/_removed_thread.html", **facts)
    course, _slash, slug = comment.lesson.partition("/")
    address = request.app.url_path_for("comments", lang=lang, course=course, slug=slug)
    cell = f"?cell={quote(comment.cell)}" if comment.cell else ""
    return RedirectResponse(f"{address}{cell}", 303)
