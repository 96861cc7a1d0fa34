"""Feedback over HTTP: pages that work without a script, and the same as fragments for htmx.

A form is answered with a redirect to a page of thanks, which htmx follows. A form with errors is shown again with the
text and the error, status 422 (429 if the sender must wait).

Contexts of the templates:

``feedback/form.html``
    ``form`` (ProblemForm), ``kinds``.
``feedback/vote.html``
    ``lesson``, ``vote`` (LessonVote or None), ``said``: it was just given; ``error`` and ``typed`` of the comment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.accounts.dependencies import LearnerId, OptionalAccount, OptionalLearnerId
from app.db import Database
from app.errors import InvalidInput, LockstepError, TooManyRequests
from app.feedback import service
from app.feedback.context import FeedbackContext, resolve_context
from app.feedback.models import LessonVote, ProblemKind
from app.lessons.dependencies import CatalogDep
from app.lessons.model import Lesson
from app.lessons.url_paths import LESSON_PATH
from app.web.access import Access
from app.web.client_network import ClientAddress, ClientNetwork
from app.web.dependencies import DatabaseDep
from app.web.forms import FormFields, idempotency_key, new_idempotency_key
from app.web.languages import LANGUAGE_PREFIX
from app.web.rendering import render_page_or_fragment
from app.web.security_headers import NO_STORE
from app.web.user_text import redisplayed_text

router = APIRouter(prefix=LANGUAGE_PREFIX)


@dataclass(frozen=True, slots=True)
class ProblemForm:
    """The form of a problem report. ``error`` is an error message about the field named by ``wrong``."""

    about: FeedbackContext
    key: str
    kind: str = ""
    text: str = ""
    error: str = ""
    wrong: str = ""

    @property
    def typed(self) -> str:
        """The text as a page can show it again."""
        return redisplayed_text(self.text)


@router.get("/feedback", name="feedback", tags=[Access.public])
async def show_form(
    request: Request, lang: str, catalog: CatalogDep, page: str = "", cell: str = "", kind: str = ""
) -> Response:
    chosen = kind if kind in list(ProblemKind) else ProblemKind.code if cell else ""
    return _render_form(request, ProblemForm(resolve_context(catalog, page, cell, lang), new_idempotency_key(), chosen))


@router.post("/feedback", name="send_feedback", tags=[Access.learner])
async def submit_problem_report(
    request: Request,
    lang: str,
    catalog: CatalogDep,
    learner: LearnerId,
    network: ClientNetwork,
    fields: FormFields,
    db: DatabaseDep,
) -> Response:
    place = resolve_context(catalog, fields.get("page", ""), fields.get("cell", ""), lang)
    form = ProblemForm(place, idempotency_key(fields), fields.get("kind", ""), fields.get("text", ""))
    draft = service.ProblemDraft(form.kind, place.page, place.key, place.cell, form.text, form.key, lang)
    try:
        async with db.writing() as session:
            await service.create_problem_report(session, service.FeedbackAuthor(learner, network), draft)
    except (InvalidInput, TooManyRequests) as problem:
        wrong = "kind" if isinstance(problem, service.ProblemKindMissing) else "text"
        again = ProblemForm(place, form.key, form.kind, form.text, problem.localized_message(), wrong)
        return _with_headers(problem, _render_form(request, again, problem.status))
    return _redirect(request, "feedback_thanks", {"page": place.page}, lang=lang)


@router.get("/feedback/thanks", name="feedback_thanks", tags=[Access.public])
async def show_thanks(request: Request, lang: str, catalog: CatalogDep, page: str = "") -> Response:
    place = resolve_context(catalog, page, "", lang)
    return render_page_or_fragment(request, "feedback/_thanks.html", "feedback/thanks.html", about=place)


@router.get(f"{LESSON_PATH}/helpful", name="lesson_vote", tags=[Access.learner])
async def show_vote(
    request: Request,
    lang: str,
    course: str,
    slug: str,
    catalog: CatalogDep,
    learner: OptionalLearnerId,
    db: DatabaseDep,
    said: bool = False,
) -> Response:
    lesson = catalog.lesson(course, slug, lang)
    return _render_vote(request, lesson, await _find_vote(db, learner, lesson), said=said)


@router.post(f"{LESSON_PATH}/helpful", name="vote_on_lesson", tags=[Access.learner])
async def submit_vote(
    request: Request,
    lang: str,
    course: str,
    slug: str,
    catalog: CatalogDep,
    learner: LearnerId,
    account: OptionalAccount,
    network: ClientNetwork,
    address: ClientAddress,
    fields: FormFields,
    db: DatabaseDep,
) -> Response:
    """``helpful`` is yes or no. A form without the field ``text`` leaves the comment unchanged."""
    lesson = catalog.lesson(course, slug, lang)
    if (answer := fields.get("helpful")) not in ("yes", "no"):
        raise InvalidInput(reason="helpful")
    comment = fields.get("text")
    who = service.FeedbackAuthor(learner, network, None if account else network or address)
    try:
        async with db.writing() as session:
            await service.vote_on_lesson(
                session, who, lesson.key, helpful=answer == "yes", comment=comment, language=lang
            )
    except (InvalidInput, TooManyRequests) as problem:
        before = await _find_vote(db, learner, lesson)
        typed, status = redisplayed_text(comment or ""), problem.status
        vote = _render_vote(request, lesson, before, error=problem.localized_message(), typed=typed, http_status=status)
        return _with_headers(problem, vote)
    return _redirect(request, "lesson_vote", {"said": "1"}, lang=lang, course=course, slug=slug)


# --- helpers ----------------------------------------------------------------------------------------------------------


def _with_headers(problem: LockstepError, response: Response) -> Response:
    response.headers.update(problem.headers)
    return response


def _render_form(request: Request, form: ProblemForm, http_status: int = 200) -> Response:
    facts = {"form": form, "kinds": list(ProblemKind), "most": service.MAX_PROBLEM_LENGTH}
    return render_page_or_fragment(request, "feedback/_form.html", "feedback/form.html", http_status, **facts)


def _render_vote(
    request: Request,
    lesson: Lesson,
    vote: LessonVote | None,
    *,
    said: bool = False,
    error: str = "",
    typed: str | None = None,
    http_status: int = 200,
) -> Response:
    shown = typed if typed is not None else vote.comment if vote else ""
    facts = {"lesson": lesson, "vote": vote, "said": said, "error": error, "typed": shown}
    return render_page_or_fragment(
        request, "feedback/_vote.html", "feedback/vote.html", http_status, most=service.MAX_COMMENT_LENGTH, **facts
    )


async def _find_vote(db: Database, learner: str | None, lesson: Lesson) -> LessonVote | None:
    async with db.session() as session:
        return await service.find_vote(session, learner, lesson.key)


def _redirect(request: Request, route: str, query: dict[str, str], **parts: Any) -> Response:
    address = f"{request.app.url_path_for(route, **parts)}?{urlencode(query)}"
    return RedirectResponse(address, 303, NO_STORE)
