"""Exercises over HTTP: fragments for htmx, and submissions as JSON, which the page then follows as runs.

Contexts of the templates:

``exercises/panel.html``
    ``lesson``, ``view`` (ExerciseView).
``exercises/hints.html``
    ``lesson``, ``cell``, ``view`` (CheckView).
``exercises/try.html``
    ``lesson``, ``cell``, ``tried`` (Try), ``titles``: the titles of checks, by name.
``exercises/solution.html``
    ``lesson``, ``cell``, ``exercise``, ``lines`` (DiffLine; empty if nothing was submitted), ``highlighted``.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query
from pydantic import Field
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from app.accounts.dependencies import OptionalLearnerId
from app.exercises.errors import HintNotFound, SolutionLocked, SubmissionNotFound
from app.exercises.panels import load_exercise
from app.exercises.reviews import ReviewGroupsDep
from app.exercises.submissions import FAILED_TRIES_BEFORE_SOLUTION, find_exercise, get_try, submit
from app.exercises.verdicts import CheckResult
from app.exercises.views import CheckView, diff_lines
from app.lessons.dependencies import CatalogDep
from app.lessons.highlight import highlight_code
from app.lessons.model import Lesson
from app.lessons.url_paths import LESSON_PATH
from app.runs.dispatcher import RequestedQuotaOwner, RunDispatcherDep
from app.runs.views import RunOut, run_out
from app.web.access import Access
from app.web.client_network import ClientAddress
from app.web.dependencies import DatabaseDep
from app.web.json_request import JsonRequest
from app.web.languages import LANGUAGE_PREFIX
from app.web.rendering import render_fragment
from app.web.security_headers import NO_STORE

router = APIRouter(prefix=LANGUAGE_PREFIX, tags=[Access.learner])

_MAX_HINTS = 20
_MAX_CHECKS = 50
Number = Annotated[int, Path(ge=0, le=_MAX_CHECKS)]
HintsOpen = Annotated[str, Query(max_length=200, pattern=r"^[0-9]{0,2}(,[0-9]{0,2})*$")]
"""The number of open hints of each check on the page, separated by commas."""


class SubmissionIn(JsonRequest):
    """Code to be judged."""

    code: str
    key: Annotated[str, Field(pattern=r"^[0-9A-Za-z-]{16,64}$")]
    """A new key for each press of Check."""


async def _lesson(lang: str, course: str, slug: str, catalog: CatalogDep) -> Lesson:
    return catalog.lesson(course, slug, lang)


LessonOfPath = Annotated[Lesson, Depends(_lesson)]


@router.post(f"{LESSON_PATH}/exercises/{{name}}/submissions", status_code=202, name="submit_exercise")
async def submit_exercise(
    response: Response,
    name: str,
    asked: SubmissionIn,
    lesson: LessonOfPath,
    owner: RequestedQuotaOwner,
    address: ClientAddress,
    catalog: CatalogDep,
    dispatcher: RunDispatcherDep,
) -> RunOut:
    cell, _exercise = find_exercise(lesson, name)
    run, at = await submit(dispatcher, catalog, owner, address, lesson, cell, asked.code, asked.key)
    response.headers.update(NO_STORE)
    return run_out(run, at)


@router.get(f"{LESSON_PATH}/exercises/{{name}}", name="exercise_panel")
async def show_panel(
    request: Request,
    name: str,
    lesson: LessonOfPath,
    learner: OptionalLearnerId,
    db: DatabaseDep,
    groups: ReviewGroupsDep,
    hints: HintsOpen = "",
) -> HTMLResponse:
    cell, _exercise = find_exercise(lesson, name)
    opened = [int(number or 0) for number in hints.split(",")]
    async with db.session() as session:
        view = await load_exercise(session, groups, learner, lesson, cell, opened)
    return render_fragment(request, "exercises/panel.html", lesson=lesson, view=view)


@router.get(f"{LESSON_PATH}/exercises/{{name}}/checks/{{check}}/hints/{{count}}", name="exercise_hints")
async def show_hints(
    request: Request,
    name: str,
    check: Number,
    count: Annotated[int, Path(ge=1, le=_MAX_HINTS)],
    lesson: LessonOfPath,
) -> HTMLResponse:
    """The first ``count`` hints of a check."""
    cell, exercise = find_exercise(lesson, name)
    if check >= len(exercise.checks) or count > len(exercise.checks[check].hints):
        raise HintNotFound
    asked = exercise.checks[check]
    view = CheckView(check, asked, CheckResult(asked.name, asked.xp), earned=False, hints_open=count)
    return render_fragment(request, "exercises/hints.html", lesson=lesson, cell=cell, view=view)


@router.get(f"{LESSON_PATH}/exercises/{{name}}/tries/{{run_id}}", name="exercise_try")
async def show_try(
    request: Request, name: str, run_id: str, lesson: LessonOfPath, learner: OptionalLearnerId, db: DatabaseDep
) -> HTMLResponse:
    cell, exercise = find_exercise(lesson, name)
    async with db.session() as session:
        run, tried = await get_try(session, learner, run_id)
    if (run.lesson, run.cell) != (lesson.key, cell.name):
        raise SubmissionNotFound
    titles = {check.name: check.title for check in exercise.checks}
    return render_fragment(request, "exercises/try.html", lesson=lesson, cell=cell, tried=tried, titles=titles)


@router.get(f"{LESSON_PATH}/exercises/{{name}}/solution", name="exercise_solution")
async def show_solution(
    request: Request,
    name: str,
    lesson: LessonOfPath,
    learner: OptionalLearnerId,
    db: DatabaseDep,
    groups: ReviewGroupsDep,
) -> HTMLResponse:
    cell, exercise = find_exercise(lesson, name)
    async with db.session() as session:
        view = await load_exercise(session, groups, learner, lesson, cell)
    if not view.solution_open:
        raise SolutionLocked(tries=FAILED_TRIES_BEFORE_SOLUTION)
    return render_fragment(
        request,
        "exercises/solution.html",
        lesson=lesson,
        cell=cell,
        exercise=exercise,
        lines=diff_lines(view.shown.code, exercise.solution) if view.shown is not None else [],
        highlighted=highlight_code(exercise.solution, cell.language),
    )
