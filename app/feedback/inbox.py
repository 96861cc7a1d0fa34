"""Where instructors read feedback: the inbox of problems, and how helpful lessons were found.

What templates get:

``feedback/inbox.html``
    ``narrowed`` (Filter), ``rows`` (Row), ``before``, ``further``: the query of the next page, ``titles`` by lesson.
``feedback/votes.html``
    ``counts`` (Count), ``sentences`` (Said), ``lesson``, ``before``, ``titles``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.accounts.current import AnInstructor
from app.db import Database
from app.errors import Unreadable
from app.feedback import listing, service
from app.feedback.listing import Filter, Which
from app.feedback.models import Kind
from app.lessons.catalog import CatalogView, TheCatalog
from app.web.form import Fields, own_path
from app.web.languages import PREFIX
from app.web.page import by_htmx, either
from app.web.paging import Before
from app.web.text import typed_again

router = APIRouter(prefix=PREFIX)

LessonKey = Annotated[str, Query(max_length=200, pattern="^[^\x00]*$")]


class Verb(StrEnum):
    """What an instructor does with a problem."""

    handle = "handle"
    reopen = "reopen"


@router.get("/feedback/inbox", name="feedback_inbox")
async def show_inbox(
    request: Request,
    lang: str,
    account: AnInstructor,
    catalog: TheCatalog,
    which: Which = Which.open,
    kind: str = "",
    lesson: LessonKey = "",
    before: Before = None,
) -> Response:
    narrowed = Filter(which, Kind(kind) if kind in list(Kind) else None, lesson)
    db: Database = request.app.state.db
    async with db.session() as session:
        rows, further = await listing.problems(session, narrowed, before)
    query = {"which": which, "kind": narrowed.kind or "", "lesson": lesson}
    return either(
        request,
        "feedback/_rows.html",
        "feedback/inbox.html",
        narrowed=narrowed,
        kinds=list(Kind),
        rows=rows,
        here=_inbox(request, lang, query),
        further=further and _inbox(request, lang, query | {"before": further}),
        titles=_titles(catalog, lang),
    )


@router.post("/feedback/inbox/{problem_id}", name="handle_feedback")
async def handle(
    request: Request, lang: str, problem_id: str, account: AnInstructor, catalog: TheCatalog, fields: Fields
) -> Response:
    try:
        verb = Verb(fields.get("verb", ""))
    except ValueError as e:
        raise Unreadable(reason="verb") from e
    here, note, error, status = own_path(fields.get("here")) or _inbox(request, lang, {}), "", "", 200
    db: Database = request.app.state.db
    try:
        async with db.writing() as session:
            problem = await service.handle(
                session, account, problem_id, fields.get("text", ""), done=verb is Verb.handle
            )
            (row,) = await listing.rows(session, [problem])
    except Unreadable as e:
        note, error, status = fields.get("text", ""), e.sentence(), e.http_status
        async with db.session() as session:
            (row,) = await listing.rows(session, [await service.get(session, problem_id)])
    if status == 200 and not by_htmx(request):
        return RedirectResponse(here, 303, {"cache-control": "no-store"})
    facts = {"row": row, "here": here, "titles": _titles(catalog, lang), "error": error, "typed": typed_again(note)}
    return either(request, "feedback/_row.html", "feedback/one.html", status, **facts)


@router.get("/feedback/votes", name="feedback_votes")
async def show_votes(
    request: Request,
    lang: str,
    account: AnInstructor,
    catalog: TheCatalog,
    lesson: LessonKey = "",
    before: Before = None,
) -> Response:
    db: Database = request.app.state.db
    async with db.session() as session:
        counts = await listing.counts(session) if before is None else []
        sentences, further = await listing.sentences(session, lesson, before)
    facts = {"counts": counts, "sentences": sentences, "lesson": lesson, "titles": _titles(catalog, lang)}
    return either(request, "feedback/_sentences.html", "feedback/votes.html", before=further, **facts)


def _inbox(request: Request, lang: str, query: dict[str, str]) -> str:
    return f"{request.app.url_path_for('feedback_inbox', lang=lang)}?{urlencode(query)}"


def _titles(catalog: CatalogView, lang: str) -> dict[str, str]:
    """The title of every lesson, by its key, in the order of the courses."""
    return {
        entry.lesson.key: entry.title
        for course in catalog.courses(lang)
        for module in catalog.outline(course.slug, lang).modules
        for entry in module.lessons
        if entry.lesson
    }
