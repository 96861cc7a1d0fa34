"""Feedback over HTTP: pages that work without a script, and the same as fragments for htmx.

What a form sends is answered with a redirect to a word of thanks, which htmx follows. A form that cannot be taken comes
back with what was typed and the reason beside it, status 422 (429 if it is too soon).

What templates get:

``feedback/form.html``
    ``form`` (Form), ``kinds``.
``feedback/vote.html``
    ``lesson``, ``vote`` (Vote or None), ``said``: it has just been given; ``error`` and ``typed`` of the sentence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.accounts.current import KnownLearner, Learner
from app.db import Database
from app.errors import TooMany, Unreadable
from app.feedback import service
from app.feedback.about import About, about
from app.feedback.models import Kind, Vote
from app.lessons.addresses import LESSON
from app.lessons.catalog import TheCatalog
from app.lessons.model import Lesson
from app.web.form import Fields, key_of, new_key
from app.web.languages import PREFIX
from app.web.origin import origin
from app.web.page import either
from app.web.text import typed_again

router = APIRouter(prefix=PREFIX)


@dataclass(frozen=True, slots=True)
class Form:
    """The form of a problem as it is shown. ``error`` is a sentence about the field that ``wrong`` names."""

    about: About
    key: str
    kind: str = ""
    text: str = ""
    error: str = ""
    wrong: str = ""

    @property
    def typed(self) -> str:
        """The text as a page can show it again."""
        return typed_again(self.text)


def _network(request: Request) -> str | None:
    return origin(request.client.host if request.client else None)


Network = Annotated[str | None, Depends(_network)]


@router.get("/feedback", name="feedback")
async def show_form(
    request: Request, lang: str, catalog: TheCatalog, page: str = "", cell: str = "", kind: str = ""
) -> Response:
    chosen = kind if kind in list(Kind) else Kind.code if cell else ""
    return _form(request, Form(about(catalog, page, cell, lang), new_key(), chosen))


@router.post("/feedback", name="send_feedback")
async def send(
    request: Request, lang: str, catalog: TheCatalog, learner: Learner, network: Network, fields: Fields
) -> Response:
    place = about(catalog, fields.get("page", ""), fields.get("cell", ""), lang)
    form = Form(place, key_of(fields), fields.get("kind", ""), fields.get("text", ""))
    draft = service.Draft(form.kind, place.page, place.key, place.cell, form.text, form.key, lang)
    db: Database = request.app.state.db
    try:
        async with db.writing() as session:
            await service.report(session, service.Who(learner, network), draft)
    except (Unreadable, TooMany) as problem:
        wrong = "kind" if isinstance(problem, service.KindMissing) else "text"
        again = Form(place, form.key, form.kind, form.text, problem.sentence(), wrong)
        return _form(request, again, problem.http_status)
    return _on(request, "feedback_thanks", {"page": place.page}, lang=lang)


@router.get("/feedback/thanks", name="feedback_thanks")
async def thank(request: Request, lang: str, catalog: TheCatalog, page: str = "") -> Response:
    place = about(catalog, page, "", lang)
    return either(request, "feedback/_thanks.html", "feedback/thanks.html", about=place)


@router.get(f"{LESSON}/helpful", name="lesson_vote")
async def show_vote(
    request: Request, lang: str, course: str, slug: str, catalog: TheCatalog, learner: KnownLearner, said: bool = False
) -> Response:
    lesson = catalog.lesson(course, slug, lang)
    return _vote(request, lesson, await _vote_of(request, learner, lesson), said=said)


@router.post(f"{LESSON}/helpful", name="vote_on_lesson")
async def vote(
    request: Request,
    lang: str,
    course: str,
    slug: str,
    catalog: TheCatalog,
    learner: Learner,
    network: Network,
    fields: Fields,
) -> Response:
    """``helpful`` is yes or no; a form without the field ``text`` leaves the sentence as it is."""
    lesson = catalog.lesson(course, slug, lang)
    if (answer := fields.get("helpful")) not in ("yes", "no"):
        raise Unreadable(reason="helpful")
    sentence, db = fields.get("text"), request.app.state.db
    who = service.Who(learner, network)
    try:
        async with db.writing() as session:
            await service.vote(session, who, lesson.key, helpful=answer == "yes", sentence=sentence, language=lang)
    except (Unreadable, TooMany) as problem:
        before = await _vote_of(request, learner, lesson)
        typed, status = typed_again(sentence or ""), problem.http_status
        return _vote(request, lesson, before, error=problem.sentence(), typed=typed, http_status=status)
    return _on(request, "lesson_vote", {"said": "1"}, lang=lang, course=course, slug=slug)


# --- beneath ----------------------------------------------------------------------------------------------------------


def _form(request: Request, form: Form, http_status: int = 200) -> Response:
    facts = {"form": form, "kinds": list(Kind), "most": service.MOST_CHARACTERS}
    return either(request, "feedback/_form.html", "feedback/form.html", http_status, **facts)


def _vote(
    request: Request,
    lesson: Lesson,
    vote: Vote | None,
    *,
    said: bool = False,
    error: str = "",
    typed: str | None = None,
    http_status: int = 200,
) -> Response:
    shown = typed if typed is not None else vote.sentence if vote else ""
    facts = {"lesson": lesson, "vote": vote, "said": said, "error": error, "typed": shown}
    return either(
        request, "feedback/_vote.html", "feedback/vote.html", http_status, most=service.MOST_SENTENCE, **facts
    )


async def _vote_of(request: Request, learner: str | None, lesson: Lesson) -> Vote | None:
    db: Database = request.app.state.db
    async with db.session() as session:
        return await service.vote_of(session, learner, lesson.key)


def _on(request: Request, route: str, query: dict[str, str], **parts: Any) -> Response:
    address = f"{request.app.url_path_for(route, **parts)}?{urlencode(query)}"
    return RedirectResponse(address, 303, {"cache-control": "no-store"})
