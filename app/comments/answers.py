"""How comments are answered: with a page, with the same as a fragment for htmx, or with the way to a comment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.accounts.models import Account
from app.comments.forms import Form
from app.comments.models import Comment
from app.errors import Problem
from app.progress.service import topic
from app.web.page import by_htmx, either, fragment


def form_answer(request: Request, form: Form, account: Account | None, http_status: int = 200) -> Response:
    """A form, as a page of its own without a script."""
    return either(request, "comments/_form.html", "comments/form.html", http_status, form=form, account=account)


def refused(request: Request, form: Form, account: Account | None, problem: Problem) -> Response:
    """The form again, with what was typed and what is wrong with it."""
    status = problem.http_status if problem.http_status in (401, 429) else 422
    return form_answer(request, form, account, status)


def to_comment(request: Request, lang: str, comment: Comment, *, alone: bool = False) -> Response:
    """On to the comment: htmx gets its thread, or the comment alone."""
    address = request.app.url_path_for("comment", lang=lang, comment_id=comment.id)
    query = "?alone=1" if alone and by_htmx(request) else ""
    return RedirectResponse(f"{address}{query}#c-{comment.id}", 303, {"cache-control": "no-store"})


def gone(request: Request, lang: str, comment: Comment, facts: Mapping[str, Any]) -> Response:
    """A thread is gone: nothing takes its place in the list; without a script the list is shown again."""
    if by_htmx(request):
        return fragment(request, "comments/_gone.html", **facts)
    course, _slash, slug = comment.lesson.partition("/")
    address = request.app.url_path_for("comments", lang=lang, course=course, slug=slug)
    cell = f"?cell={quote(comment.cell)}" if comment.cell else ""
    return RedirectResponse(f"{address}{cell}", 303)


def tell_learner(request: Request, learner: str | None) -> None:
    """Have the pages of a learner look for what was awarded."""
    if learner is not None:
        request.app.state.bus.wake(topic(learner))
