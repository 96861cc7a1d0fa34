"""Predictions and quizzes over HTTP, and a response with all of a learner's work in a lesson.

Contexts of the templates:

``exercises/prediction.html``
    ``lesson``, ``view`` (PredictionView), ``error``: an error message about the form, or "".
``exercises/quiz.html``
    ``lesson``, ``quiz``, ``answer`` (GivenAnswer or None), ``error``.
``exercises/work.html``
    ``lesson``, ``exercises``, ``predictions``, ``quizzes``: the contexts of those templates, for the whole lesson.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import HTMLResponse

from app.accounts.dependencies import LearnerId, OptionalLearnerId
from app.errors import InvalidInput, LockstepError
from app.exercises.panels import load_exercises
from app.exercises.predictions import answer_prediction, find_prediction, load_predictions
from app.exercises.quizzes import answer_quiz, find_answers, find_quiz, parse_choices
from app.exercises.reviews import ReviewGroupsDep
from app.exercises.routes import LessonOfPath
from app.lessons.url_paths import LESSON_PATH
from app.progress.service import ProgressServiceDep
from app.rate_limit import TooManyAttempts
from app.runs.dispatcher import VisitorAddress
from app.web.access import Access
from app.web.client_network import client_network
from app.web.dependencies import DatabaseDep
from app.web.forms import FormFields
from app.web.languages import LANGUAGE_PREFIX
from app.web.rendering import render_fragment

router = APIRouter(prefix=LANGUAGE_PREFIX, tags=[Access.learner])

_PROGRESS_CHANGED = {"HX-Trigger": '{"lockstep:progress": {"target": "body"}}'}
"""Makes the page request again what shows progress: the header and the end of the lesson."""


async def _counted_address(address: VisitorAddress) -> str | None:
    return address and (client_network(address) or address)


CountedAddress = Annotated[str | None, Depends(_counted_address)]
"""The network or private address whose visitors share an allowance; None for an account."""


@router.get(f"{LESSON_PATH}/work", name="lesson_work")
async def show_work(
    request: Request, lesson: LessonOfPath, learner: OptionalLearnerId, db: DatabaseDep, groups: ReviewGroupsDep
) -> HTMLResponse:
    async with db.session() as session:
        exercises = await load_exercises(session, groups, learner, lesson)
        predictions = await load_predictions(session, learner, lesson, lesson.predictions)
        answers = await find_answers(session, learner, lesson)
    return render_fragment(
        request,
        "exercises/work.html",
        lesson=lesson,
        exercises=exercises,
        predictions=predictions,
        answers=answers,
    )


@router.post(f"{LESSON_PATH}/quizzes/{{name}}", name="answer_quiz")
async def post_quiz_answer(
    request: Request,
    name: str,
    lesson: LessonOfPath,
    learner: LearnerId,
    address: CountedAddress,
    fields: FormFields,
    progress: ProgressServiceDep,
    db: DatabaseDep,
) -> HTMLResponse:
    """A single choice is the number in the field ``choice``; several choices have a field ``choice-NUMBER`` each."""
    quiz = find_quiz(lesson, name)
    ticked = [fields["choice"]] if "choice" in fields else []
    ticked += [field.removeprefix("choice-") for field in fields if field.startswith("choice-")]
    error: LockstepError | None = None
    try:
        choices = parse_choices(quiz, ticked)
        async with db.writing() as session:
            learner = await answer_quiz(session, progress, learner, lesson, quiz, choices, visitor_address=address)
    except (InvalidInput, TooManyAttempts) as e:
        error = e
    async with db.session() as session:
        answer = (await find_answers(session, learner, lesson)).get(name)
    return _render_answer(request, "exercises/quiz.html", error, lesson=lesson, quiz=quiz, answer=answer)


@router.get(f"{LESSON_PATH}/predictions/{{name}}", name="prediction")
async def show_prediction(
    request: Request, name: str, lesson: LessonOfPath, learner: OptionalLearnerId, db: DatabaseDep
) -> HTMLResponse:
    prediction = find_prediction(lesson, name)
    async with db.session() as session:
        [view] = await load_predictions(session, learner, lesson, [prediction])
    return render_fragment(request, "exercises/prediction.html", lesson=lesson, view=view, error="")


@router.post(f"{LESSON_PATH}/predictions/{{name}}", name="answer_prediction")
async def post_prediction(
    request: Request,
    name: str,
    lesson: LessonOfPath,
    learner: LearnerId,
    address: CountedAddress,
    fields: FormFields,
    progress: ProgressServiceDep,
    db: DatabaseDep,
) -> HTMLResponse:
    """Record a guess (see ``guesses.read_guess`` for the fields) or, with the field ``skip``, that it was skipped."""
    prediction = find_prediction(lesson, name)
    error: LockstepError | None = None
    try:
        async with db.writing() as session:
            learner = await answer_prediction(
                session,
                progress,
                learner,
                lesson,
                prediction,
                fields,
                skip="skip" in fields,
                visitor_address=address,
            )
    except (InvalidInput, TooManyAttempts) as e:
        error = e
    async with db.session() as session:
        [view] = await load_predictions(session, learner, lesson, [prediction])
    return _render_answer(request, "exercises/prediction.html", error, lesson=lesson, view=view)


def _render_answer(request: Request, template: str, error: LockstepError | None, **context: Any) -> HTMLResponse:
    """The question as it is now; without an error, progress has changed."""
    if error is None:
        response = render_fragment(request, template, error="", **context)
        response.headers.update(_PROGRESS_CHANGED)
        return response
    status = error.status if isinstance(error, TooManyAttempts) else 200
    response = render_fragment(request, template, status, error=error.localized_message(), **context)
    response.headers.update(error.headers)
    return response
