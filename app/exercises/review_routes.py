"""Reviews over HTTP for the learner: fragments of the panel of an exercise.

Contexts of the templates:

``exercises/panel.html``
    See ``routes``; also ``error``: why something was refused, or "".
``exercises/review.html``
    ``review`` (Review), ``reviewer``: a name, or "", ``lines`` (ReviewedLine), ``remark``: HTML.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.requests import Request
from starlette.responses import HTMLResponse

from app.accounts.dependencies import RequiredAccount
from app.accounts.models import Account
from app.db import Database
from app.errors import LockstepError
from app.exercises.errors import ReviewNotFound
from app.exercises.models import DECIDED
from app.exercises.panels import load_exercise
from app.exercises.review_decisions import load_lines, to_markup
from app.exercises.reviews import (
    ReviewersDep,
    ReviewGroups,
    ReviewGroupsDep,
    get_own_review,
    request_review,
    withdraw_review,
)
from app.exercises.routes import LessonOfPath
from app.exercises.submissions import find_exercise
from app.lessons.model import Cell, Lesson
from app.lessons.url_paths import LESSON_PATH
from app.web.access import Access
from app.web.dependencies import DatabaseDep
from app.web.forms import FormFields
from app.web.languages import LANGUAGE_PREFIX
from app.web.rendering import render_fragment

router = APIRouter(prefix=LANGUAGE_PREFIX, tags=[Access.account])

ReviewId = Annotated[str, Path(max_length=64, pattern="^[0-9a-z]*$")]


@router.post(f"{LESSON_PATH}/exercises/{{name}}/reviews", name="request_review")
async def ask(
    request: Request,
    name: str,
    lesson: LessonOfPath,
    account: RequiredAccount,
    fields: FormFields,
    db: DatabaseDep,
    groups: ReviewGroupsDep,
    reviewers: ReviewersDep,
) -> HTMLResponse:
    """Ask the group in the field ``group``."""
    cell, _exercise = find_exercise(lesson, name)
    error: LockstepError | None = None
    try:
        async with db.writing() as session:
            await request_review(session, groups, reviewers, account, lesson, cell, fields.get("group", ""))
    except LockstepError as e:
        error = e
    return await _panel(request, db, groups, account, lesson, cell, error)


@router.post(f"{LESSON_PATH}/exercises/{{name}}/reviews/{{review_id}}/withdraw", name="withdraw_review")
async def post_withdrawal(
    request: Request,
    name: str,
    review_id: ReviewId,
    lesson: LessonOfPath,
    account: RequiredAccount,
    db: DatabaseDep,
    groups: ReviewGroupsDep,
) -> HTMLResponse:
    cell, _exercise = find_exercise(lesson, name)
    error: LockstepError | None = None
    try:
        async with db.writing() as session:
            await withdraw_review(session, account, review_id)
    except LockstepError as e:
        error = e
    return await _panel(request, db, groups, account, lesson, cell, error)


@router.get(f"{LESSON_PATH}/exercises/{{name}}/reviews/{{review_id}}", name="exercise_review")
async def show_review(
    request: Request, name: str, review_id: ReviewId, lesson: LessonOfPath, account: RequiredAccount, db: DatabaseDep
) -> HTMLResponse:
    """The code that was submitted and, once it is decided, the comments on it."""
    cell, _exercise = find_exercise(lesson, name)
    async with db.session() as session:
        review, reviewer = await get_own_review(session, account, review_id)
        if (review.lesson, review.exercise) != (lesson.key, cell.name):
            raise ReviewNotFound
        lines = await load_lines(session, review, commented=review.state in DECIDED)
    facts = {"review": review, "reviewer": reviewer, "lines": lines, "remark": to_markup(review.remark)}
    return render_fragment(request, "exercises/review.html", **facts)


async def _panel(
    request: Request,
    db: Database,
    groups: ReviewGroups,
    account: Account,
    lesson: Lesson,
    cell: Cell,
    error: LockstepError | None,
) -> HTMLResponse:
    async with db.session() as session:
        view = await load_exercise(session, groups, account.learner_id, lesson, cell)
    said = error.localized_message() if error is not None else ""
    response = render_fragment(request, "exercises/panel.html", lesson=lesson, view=view, error=said)
    if error is not None:
        response.headers.update(error.headers)
    return response
