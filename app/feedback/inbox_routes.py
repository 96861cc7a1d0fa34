"""Instructors' pages for feedback: the inbox of problem reports, and the votes on lessons.

Contexts of the templates:

``feedback/inbox.html``
    ``narrowed`` (InboxFilter), ``rows`` (ProblemRow), ``before``, ``next_url``: the address of the next page,
    ``titles`` by lesson.
``feedback/votes.html``
    ``counts`` (VoteCount), ``sentences`` (VoteComment), ``lesson``, ``before``, ``titles``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.accounts.dependencies import RequiredInstructor
from app.errors import InvalidInput
from app.feedback import queries, service
from app.feedback.models import ProblemKind
from app.feedback.queries import InboxFilter, ProblemStatus
from app.lessons.catalog import CatalogView
from app.lessons.dependencies import CatalogDep
from app.web.access import Access
from app.web.dependencies import DatabaseDep
from app.web.forms import FormFields, local_path
from app.web.languages import LANGUAGE_PREFIX
from app.web.pagination import BeforeCursor
from app.web.rendering import is_htmx_request, render_page_or_fragment
from app.web.security_headers import NO_STORE
from app.web.user_text import redisplayed_text

router = APIRouter(prefix=LANGUAGE_PREFIX, tags=[Access.instructor])

LessonKey = Annotated[str, Query(max_length=200, pattern="^[^\x00]*$")]


class InboxAction(StrEnum):
    """An action of an instructor on a problem report."""

    resolve = "resolve"
    reopen = "reopen"


@router.get("/feedback/inbox", name="feedback_inbox")
async def show_inbox(
    request: Request,
    lang: str,
    account: RequiredInstructor,
    catalog: CatalogDep,
    db: DatabaseDep,
    which: ProblemStatus = ProblemStatus.open,
    kind: str = "",
    lesson: LessonKey = "",
    before: BeforeCursor = None,
) -> Response:
    narrowed = InboxFilter(which, ProblemKind(kind) if kind in list(ProblemKind) else None, lesson)
    async with db.session() as session:
        rows, next_before = await queries.list_problem_reports(session, narrowed, before)
    query = {"which": which, "kind": narrowed.kind or "", "lesson": lesson}
    return render_page_or_fragment(
        request,
        "feedback/_rows.html",
        "feedback/inbox.html",
        narrowed=narrowed,
        kinds=list(ProblemKind),
        rows=rows,
        here=_inbox_url(request, lang, query),
        next_url=next_before and _inbox_url(request, lang, query | {"before": next_before}),
        titles=_lesson_titles(catalog, lang),
    )


@router.post("/feedback/inbox/{problem_id}", name="update_problem")
async def update_problem(
    request: Request,
    lang: str,
    problem_id: str,
    account: RequiredInstructor,
    catalog: CatalogDep,
    fields: FormFields,
    db: DatabaseDep,
) -> Response:
    try:
        verb = InboxAction(fields.get("verb", ""))
    except ValueError as e:
        raise InvalidInput(reason="verb") from e
    here, note, error, status = local_path(fields.get("here")) or _inbox_url(request, lang, {}), "", "", 200
    try:
        async with db.writing() as session:
            problem = await service.set_problem_resolved(
                session, account, problem_id, fields.get("text", ""), resolved=verb is InboxAction.resolve
            )
            (row,) = await queries.load_problem_rows(session, [problem])
    except InvalidInput as e:
        note, error, status = fields.get("text", ""), e.localized_message(), e.status
        async with db.session() as session:
            (row,) = await queries.load_problem_rows(session, [await service.get_problem_report(session, problem_id)])
    if status == 200 and not is_htmx_request(request):
        return RedirectResponse(here, 303, NO_STORE)
    facts = {
        "row": row,
        "here": here,
        "titles": _lesson_titles(catalog, lang),
        "error": error,
        "typed": redisplayed_text(note),
    }
    return render_page_or_fragment(request, "feedback/_row.html", "feedback/problem.html", status, **facts)


@router.get("/feedback/votes", name="feedback_votes")
async def show_votes(
    request: Request,
    lang: str,
    account: RequiredInstructor,
    catalog: CatalogDep,
    db: DatabaseDep,
    lesson: LessonKey = "",
    before: BeforeCursor = None,
) -> Response:
    async with db.session() as session:
        counts = await queries.count_votes(session) if before is None else []
        sentences, next_before = await queries.list_vote_comments(session, lesson, before)
    facts = {"counts": counts, "sentences": sentences, "lesson": lesson, "titles": _lesson_titles(catalog, lang)}
    return render_page_or_fragment(
        request, "feedback/_vote_comments.html", "feedback/votes.html", before=next_before, **facts
    )


def _inbox_url(request: Request, lang: str, query: dict[str, str]) -> str:
    return f"{request.app.url_path_for('feedback_inbox', lang=lang)}?{urlencode(query)}"


def _lesson_titles(catalog: CatalogView, lang: str) -> dict[str, str]:
    """The title of every lesson, by key, in the order of the courses."""
    return {
        entry.lesson.key: entry.title
        for course in catalog.courses(lang)
        for entry in catalog.outline(course.slug, lang).lessons
        if entry.lesson
    }
